/* SPDX-License-Identifier: MIT */
/* What a running sweep is told; see control.h. DIR/.running holds the driver's process id, DIR/.control one
 * word; both are there for a moment only, and say nothing about the results. */
#include "driver/control.h"
#include "causal/conductor/conductor.h"
#include "core/clock.h"
#include "driver/say.h"
#include "driver/signals.h"
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_EVERY = 200000000 /* ns */, PATIENCE = 50 /* ... times */ };

static const char *const words[] = { CA_CONTROL_WORDS };

static const char *path_of(const char *dir, const char *name, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s", dir, name);
	return path;
}

/* By rename: a reader sees all of it, or nothing. */
static bool write_file(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX], temporary[PATH_MAX];
	FILE *file;
	bool ok;

	snprintf(temporary, sizeof temporary, "%s/%s.%ld", dir, name, (long)getpid());
	file = fopen(temporary, "we");
	ok = file && fputs(text, file) >= 0;
	if (file && fclose(file))
		ok = false;
	if (ok && !rename(temporary, path_of(dir, name, path)))
		return true;
	unlink(temporary);
	return false;
}

static bool read_file(const char *dir, const char *name, char *text, size_t size)
{
	char path[PATH_MAX];
	FILE *file = fopen(path_of(dir, name, path), "re");
	bool ok = file && fgets(text, (int)size, file);

	if (file)
		fclose(file);
	if (ok)
		text[strcspn(text, "\n")] = '\0';
	return ok;
}

static void remove_file(const char *dir, const char *name)
{
	char path[PATH_MAX];

	unlink(path_of(dir, name, path));
}

void ca_control_open(struct ca_control *control, const char *dir)
{
	char text[32];

	*control = (struct ca_control){ .dir = dir };
	snprintf(text, sizeof text, "%ld\n", (long)getpid());
	remove_file(dir, ".control");
	write_file(dir, ".running", text); /* without it there is no ctl, and all else works */
}

void ca_control_close(struct ca_control *control)
{
	remove_file(control->dir, ".running");
	remove_file(control->dir, ".control");
}

/* What was asked for since the last look; it looks a few times a second. */
static enum ca_control_word take(struct ca_control *control)
{
	uint64_t now = ca_clock_now();
	char text[32];

	if (now - control->looked < LOOK_EVERY)
		return CA_CONTROL_NONE;
	control->looked = now;
	if (!read_file(control->dir, ".control", text, sizeof text))
		return CA_CONTROL_NONE;
	remove_file(control->dir, ".control");
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!strcmp(text, words[i]))
			return (enum ca_control_word)(CA_CONTROL_PAUSE + i);
	return CA_CONTROL_NONE;
}

static void pause_all(struct ca_control *control, struct ca_conductor *conductor, bool pause)
{
	if (!ca_conductor_pause(conductor, pause)) {
		ca_say("it goes on: a call graph alone is counted in the program, which cannot be "
		       "paused; start it with --toggle-signal or with a second sink, then it can");
		return;
	}
	control->paused = pause;
	if (pause)
		ca_say("paused: nothing new until causal ctl resume %s", control->dir);
	else
		ca_say("it goes on");
}

bool ca_control_obey(struct ca_control *control, struct ca_signals *signals, struct ca_conductor *conductor)
{
	enum ca_control_word word = take(control);

	if (signals->toggled)
		pause_all(control, conductor, !control->paused);
	signals->toggled = false;
	if (word == CA_CONTROL_PAUSE || word == CA_CONTROL_RESUME)
		pause_all(control, conductor, word == CA_CONTROL_PAUSE);
	if (word == CA_CONTROL_FINISH)
		ca_conductor_finish(conductor);
	return word == CA_CONTROL_FINISH;
}

static bool is_there(const char *dir, const char *name)
{
	char path[PATH_MAX];

	return !access(path_of(dir, name, path), F_OK);
}

enum ca_status ca_control_ask(const char *dir, enum ca_control_word word, struct ca_err *err)
{
	char text[32];
	long pid;

	if (!read_file(dir, ".running", text, sizeof text) || (pid = atol(text)) <= 0 ||
	    (kill((pid_t)pid, 0) && errno == ESRCH))
		return ca_err_set(err, CA_ERR_IO,
				  "nothing runs in %s; give the directory that the running causal "
				  "writes (-o, or causal-out/<app>-<time>)",
				  dir);
	if (!write_file(dir, ".control", words[word - CA_CONTROL_PAUSE]))
		return ca_err_set(err, CA_ERR_IO, "cannot write to %s: %s; ask as the user who runs it", dir,
				  strerror(errno));
	for (int i = 0; i < PATIENCE && is_there(dir, ".control"); i++)
		usleep(LOOK_EVERY / 1000);
	if (!is_there(dir, ".control"))
		return CA_OK;
	remove_file(dir, ".control");
	return ca_err_set(err, CA_ERR_IO, "the run in %s (process %ld) does not answer; is it stopped?", dir,
			  pid);
}
