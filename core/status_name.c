/* SPDX-License-Identifier: MIT */
/* Names of status codes; apart from core/err.c so that the runtime can use them. */
#include "core/status.h"

const char *ca_status_name(enum ca_status status)
{
	switch (status) {
	case CA_OK:
		return "success";
	case CA_ERR_USAGE:
		return "bad usage";
	case CA_ERR_IO:
		return "input or output failed";
	case CA_ERR_NOMEM:
		return "out of memory";
	case CA_ERR_FORMAT:
		return "malformed data";
	case CA_ERR_UNSUPPORTED:
		return "not supported here";
	case CA_ERR_PERMISSION:
		return "permission denied";
	case CA_ERR_NOT_FOUND:
		return "not found";
	case CA_ERR_FULL:
		return "table full";
	case CA_ERR_AGAIN:
		return "not now";
	}
	return "unknown status";
}
