/* SPDX-License-Identifier: MIT */
/* The texts of a sweep; see texts.h. */
#include "binary/plan/texts.h"
#include "core/vec.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct kept {
	char *path;
	struct stat file;
	struct ca_text *text; /* NULL: it cannot be read */
};
struct ca_texts {
	pthread_mutex_t lock;
	struct ca_vec kept; /* struct kept */
};

struct ca_texts *ca_texts_new(void)
{
	struct ca_texts *t = calloc(1, sizeof *t);

	if (!t)
		return NULL;
	pthread_mutex_init(&t->lock, NULL);
	t->kept.size = sizeof(struct kept);
	return t;
}

void ca_texts_free(struct ca_texts *t)
{
	struct kept *kept = t ? t->kept.at : NULL;

	if (!t)
		return;
	for (size_t i = 0; i < t->kept.n; i++) {
		ca_text_close(kept[i].text);
		free(kept[i].path);
	}
	ca_vec_free(&t->kept);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* A program that is built anew while its sweep goes on is another file, or has another time. */
static bool is_same(const struct kept *kept, const char *path, const struct stat *file)
{
	return kept->file.st_dev == file->st_dev && kept->file.st_ino == file->st_ino &&
	       kept->file.st_size == file->st_size && kept->file.st_mtim.tv_sec == file->st_mtim.tv_sec &&
	       kept->file.st_mtim.tv_nsec == file->st_mtim.tv_nsec && !strcmp(kept->path, path);
}

/* The lock is held. */
static struct ca_text *open_one(struct ca_texts *t, const char *path, const struct ca_index *index,
				const struct stat *file)
{
	struct kept *kept = t->kept.at, one = { .path = strdup(path), .file = *file };

	for (size_t i = 0; i < t->kept.n; i++)
		if (is_same(&kept[i], path, file)) {
			free(one.path);
			return kept[i].text;
		}
	kept = one.path ? ca_vec_push(&t->kept) : NULL;
	if (!kept) {
		free(one.path);
		return NULL;
	}
	if (ca_text_open(&one.text, path, NULL) != CA_OK)
		one.text = NULL;
	else if (index)
		ca_text_learn(one.text, index);
	*kept = one;
	return one.text;
}

struct ca_text *ca_texts_open(struct ca_texts *t, const char *path, const struct ca_index *index)
{
	struct ca_text *text;
	struct stat file;

	if (stat(path, &file))
		return NULL;
	pthread_mutex_lock(&t->lock);
	text = open_one(t, path, index, &file);
	pthread_mutex_unlock(&t->lock);
	return text;
}
