/* SPDX-License-Identifier: MIT */
/* Settings from a file in XML; see core/settings_xml.c. */
#ifndef CA_CORE_SETTINGS_XML_H
#define CA_CORE_SETTINGS_XML_H
#include "core/settings.h"

/* CA_ERR_USAGE: it cannot be read, or something in it is no setting; the text says what. */
enum ca_status ca_settings_read_xml(struct ca_settings *settings, const char *path, struct ca_err *err);

#endif
