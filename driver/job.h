/* SPDX-License-Identifier: MIT */
/* A job: everything that a sweep or a single run needs to know, from the command line. */
#ifndef CA_DRIVER_JOB_H
#define CA_DRIVER_JOB_H
#include "driver/environ.h"
#include "driver/options.h"
#include "driver/variants.h"

struct ca_job {
	struct ca_options options;
	struct ca_settings settings; /* of the sweep */
	struct ca_variants variants;
	const char **command; /* with ourselves put in, in launcher mode; owned array */
	const char *program;  /* that is profiled: the command, or what a launcher starts; borrowed */
	const char *app;      /* its name; borrowed */
	char *self;           /* our executable. Owned */
	char *runtime;        /* to preload; NULL in launcher mode. Owned */
	char **again;         /* the options with which more such runs are made; ends with NULL. Owned */
	char *dir;            /* of the results. Owned */
	unsigned first_run;   /* number of the first run file */
	int level;            /* verbosity, debug included */
	bool show_environment;
};

/* From the command line to settings: file, environment, options. 0, or the exit status, with
 * the text in err. */
int ca_job_init(struct ca_job *job, char **argv, struct ca_err *err);
/* Puts in what the keys in the names of output stand for (driver/keys.h). */
enum ca_status ca_job_expand(struct ca_job *job, struct ca_err *err);
/* Runtime, launcher and output directory, unless there is one: what is needed to run, not to list. */
int ca_job_prepare(struct ca_job *job, struct ca_err *err);
void ca_job_fini(struct ca_job *job);

/* The environment for one variant's child; settings are the variant's. session: its path. */
enum ca_status ca_job_environ(const struct ca_job *job, const struct ca_variant *variant,
			      const struct ca_settings *settings, const char *session,
			      struct ca_environ *environment, struct ca_err *err);
/* What is shown of it before the run, by verbosity; lines begin with prefix. */
void ca_job_show(const struct ca_job *job, const struct ca_environ *environment, const char *prefix);
/* For the conductor: a line at or below the verbosity is shown. context: the job. */
void ca_job_message(void *context, int level, const char *text);

/* For the conductor of the first run, with --reset: remove earlier results. context: the job. */
enum ca_status ca_job_clear(void *context, struct ca_err *err);

/* Without a number of runs: as many as it takes. */
bool ca_job_is_open_ended(const struct ca_job *job);
/* Merge the runs in the directory, write the profile; show the table, and why it ended (NULL: as it was
 * asked to). 0 or an exit status. */
int ca_job_results(const struct ca_job *job, bool show, const char *why);

#endif
