/* SPDX-License-Identifier: MIT */
/* The report's page; see driver/report_page.h. The files are part of this program, so that it finds
 * them wherever it is installed. */
#include "driver/report_page.h"
#include <json-c/json.h>
#include <string.h>

/* A file of driver/report/ as it is; CA_REPORT_FILES names that folder. */
#define PART(symbol, name)                                                                                   \
	__asm__(".pushsection .rodata\n"                                                                     \
		".balign 16\n" #symbol ":\n"                                                                 \
		".incbin \"" CA_REPORT_FILES "/" name "\"\n" #symbol "_end:\n"                               \
		".byte 0\n"                                                                                  \
		".popsection\n");                                                                            \
	extern const char symbol[] __attribute__((visibility("hidden")));                                    \
	extern const char symbol##_end[] __attribute__((visibility("hidden")))
PART(ca_report_page_html, "report.html");
PART(ca_report_page_samples_html, "samples.html");
PART(ca_report_page_samples_css, "samples.css");
PART(ca_report_page_samples_js, "samples.js");
PART(ca_report_page_css, "report.css");
PART(ca_report_page_js, "report.js");
PART(ca_report_page_plot_css, "uPlot.css");
PART(ca_report_page_plot_js, "uPlot.js");
PART(ca_report_page_plot_licence, "uPlot.LICENSE");

static const struct {
	const char *name, *text, *end;
} parts[] = {
	{ "samples.css", ca_report_page_samples_css, ca_report_page_samples_css_end },
	{ "samples.js", ca_report_page_samples_js, ca_report_page_samples_js_end },
	{ "report.css", ca_report_page_css, ca_report_page_css_end },
	{ "report.js", ca_report_page_js, ca_report_page_js_end },
	{ "uPlot.css", ca_report_page_plot_css, ca_report_page_plot_css_end },
	{ "uPlot.js", ca_report_page_plot_js, ca_report_page_plot_js_end },
	{ "uPlot.LICENSE", ca_report_page_plot_licence, ca_report_page_plot_licence_end },
};

/* A name of the program may be "</script>" or "<!--". In JSON, < stands within strings only. */
static void put_data(struct json_object *data, FILE *file)
{
	const char *text = json_object_to_json_string_ext(data, JSON_C_TO_STRING_NOSLASHESCAPE);

	for (; *text; text++)
		if (*text == '<')
			fputs("\\u003c", file);
		else
			fputc(*text, file);
}

static void put_part(const char *name, size_t length, struct json_object *data, FILE *file)
{
	if (length == 4 && !strncmp(name, "data", 4)) {
		put_data(data, file);
		return;
	}
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (strlen(parts[i].name) == length && !strncmp(parts[i].name, name, length))
			fwrite(parts[i].text, 1, (size_t)(parts[i].end - parts[i].text), file);
}

/* The page has @@NAME@@ where a part goes. */
static bool write_page(const char *at, struct json_object *data, FILE *file)
{
	const char *mark;

	while ((mark = strstr(at, "@@"))) {
		const char *name = mark + 2, *end = strstr(name, "@@");

		fwrite(at, 1, (size_t)(mark - at), file);
		put_part(name, (size_t)(end - name), data, file);
		at = end + 2;
	}
	fputs(at, file);
	return !ferror(file);
}

bool ca_report_page_write(struct json_object *data, FILE *file)
{
	return write_page(ca_report_page_html, data, file);
}

bool ca_report_page_write_samples(struct json_object *data, FILE *file)
{
	return write_page(ca_report_page_samples_html, data, file);
}
