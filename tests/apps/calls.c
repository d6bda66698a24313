/* SPDX-License-Identifier: MIT */
/* Calls of libc that wait or hand something over: each does what it does without us. */
#include "tests/apps/app.h"
#include <aio.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>

static char self[4096];

static int scratch_file(void)
{
	char name[] = "calls-XXXXXX";
	int fd = mkstemp(name);

	CHECK(fd >= 0 && !unlink(name));
	return fd;
}

/* ---- descriptors ------------------------------------------------------------------------------------ */
static void move_data(void)
{
	int file = scratch_file(), copy = scratch_file(), ends[2], more[2];
	char a[4] = "abc", b[4] = "def", got[16] = "";
	struct iovec v[2] = { { a, 3 }, { b, 3 } };
	off_t at = 1;

	CHECK(!pipe(ends) && !pipe(more));
	CHECK(pwritev(file, v, 2, 0) == 6 && pwritev2(file, v, 1, 6, 0) == 3 && pwrite(file, "x", 1, 9) == 1);
	CHECK(lseek(file, 0, SEEK_CUR) == 0);
	CHECK(preadv(file, v, 2, 3) == 6 && !memcmp(a, "def", 3) && !memcmp(b, "abc", 3));
	CHECK(preadv2(file, v, 1, 0, 0) == 3 && !memcmp(a, "abc", 3));
	CHECK(sendfile(ends[1], file, &at, 4) == 4 && at == 5);
	CHECK(read(ends[0], got, 16) == 4 && !memcmp(got, "bcde", 4));
	CHECK(splice(file, NULL, ends[1], NULL, 4, 0) == 4);
	CHECK(tee(ends[0], more[1], 4, 0) == 4);
	CHECK(splice(ends[0], NULL, copy, NULL, 4, 0) == 4);
	CHECK(read(more[0], got, 16) == 4 && !memcmp(got, "abcd", 4));
	CHECK(vmsplice(ends[1], v, 2, 0) == 6 && read(ends[0], got, 16) == 6);
	CHECK(lseek(file, 0, SEEK_SET) == 0 && copy_file_range(file, NULL, copy, NULL, 5, 0) == 5);
	CHECK(pread(copy, got, 16, 0) == 9 && !memcmp(got, "abcdabcde", 9));
	CHECK(!syncfs(copy) && !sync_file_range(copy, 0, 0, SYNC_FILE_RANGE_WRITE));
	errno = 0;
	CHECK(preadv(-1, v, 2, 0) == -1 && errno == EBADF);
	for (int i = 0; i < 2; i++) {
		close(ends[i]);
		close(more[i]);
	}
	close(file);
	close(copy);
}

static void send_messages(void)
{
	int pair[2], event = eventfd(0, 0);
	char a[4] = "one", b[4] = "two", c[4], d[4];
	struct iovec out[2] = { { a, 4 }, { b, 4 } }, in[2] = { { c, 4 }, { d, 4 } };
	struct mmsghdr sent[2] = { { .msg_hdr = { .msg_iov = &out[0], .msg_iovlen = 1 } },
				   { .msg_hdr = { .msg_iov = &out[1], .msg_iovlen = 1 } } };
	struct mmsghdr got[2] = { { .msg_hdr = { .msg_iov = &in[0], .msg_iovlen = 1 } },
				  { .msg_hdr = { .msg_iov = &in[1], .msg_iovlen = 1 } } };
	struct timespec soon = { 1, 0 };
	eventfd_t value;

	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	CHECK(sendmmsg(pair[0], sent, 2, 0) == 2);
	CHECK(recvmmsg(pair[1], got, 2, 0, &soon) == 2);
	CHECK(!strcmp(c, "one") && !strcmp(d, "two") && got[1].msg_len == 4);
	CHECK(!eventfd_write(event, 3) && !eventfd_read(event, &value) && value == 3);
	close(pair[0]);
	close(pair[1]);
	close(event);
}

static void use_disk(void)
{
	int file = scratch_file();
	char *page, text[] = "abc";
	struct aiocb job = { .aio_fildes = file, .aio_buf = text, .aio_nbytes = 3 };
	const struct aiocb *const jobs[] = { &job };

	CHECK(!aio_write(&job));
	while (aio_error(&job) == EINPROGRESS)
		CHECK(!aio_suspend(jobs, 1, NULL) || errno == EINTR);
	CHECK(aio_return(&job) == 3);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	CHECK(page != MAP_FAILED && !memcmp(page, "abc", 3));
	page[0] = 'x';
	CHECK(!msync(page, 4096, MS_SYNC) && !msync(page, 4096, MS_ASYNC));
	CHECK(msync(page + 1, 1, MS_SYNC) == -1 && errno == EINVAL);
	munmap(page, 4096);
	close(file);
}

static void ask(void)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV }, *found;
	char name[64], port[16];

	CHECK(!getaddrinfo("127.0.0.1", "80", &hints, &found));
	CHECK(!getnameinfo(found->ai_addr, found->ai_addrlen, name, sizeof name, port, sizeof port,
			   NI_NUMERICHOST | NI_NUMERICSERV));
	CHECK(!strcmp(name, "127.0.0.1") && !strcmp(port, "80"));
	freeaddrinfo(found);
	CHECK(gethostbyname("127.0.0.1"));
}

static void case_files(void)
{
	for (double end = now() + 0.4; now() < end;) {
		move_data();
		send_messages();
		use_disk();
		ask();
		work_once();
	}
}

/* ---- locks on files, queues --------------------------------------------------------------------------- */
static void ignore(int signal)
{
	(void)signal;
}

/* Another process has the lock for a while; a signal without SA_RESTART ends the wait for it. */
static void lock_files(int file, const char *name)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int ready[2], done[2], status;
	char c;
	pid_t child;

	CHECK(!pipe(ready) && !pipe2(done, O_NONBLOCK));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		int mine = open(name, O_RDWR); /* flock is per open file */

		CHECK(mine >= 0 && !fcntl(file, F_SETLKW, &whole) && !flock(mine, LOCK_EX));
		CHECK(write(ready[1], "x", 1) == 1);
		do { /* until it has come in the wait */
			work_for(0.05);
			kill(getppid(), SIGUSR1);
			work_for(0.05);
		} while (read(done[0], &c, 1) != 1);
		_exit(5);
	}
	CHECK(read(ready[0], &c, 1) == 1);
	CHECK(fcntl(file, F_SETLK, &whole) == -1 && (errno == EAGAIN || errno == EACCES));
	CHECK(lockf(file, F_TLOCK, 0) == -1);
	CHECK(flock(file, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK);
	CHECK(fcntl(file, F_SETLKW, &whole) == -1 && errno == EINTR);
	CHECK(write(done[1], "x", 1) == 1);
	while (fcntl(file, F_SETLKW, &whole))
		CHECK(errno == EINTR);
	CHECK(!flock(file, LOCK_EX) && !flock(file, LOCK_UN));
	CHECK(wait3(&status, 0, NULL) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
	CHECK(!lockf(file, F_ULOCK, 0) && !lockf(file, F_LOCK, 0) && !lockf(file, F_ULOCK, 0));
	close(ready[0]);
	close(ready[1]);
	close(done[0]);
	close(done[1]);
}

static void case_locks(void)
{
	char name[] = "calls-XXXXXX";
	int file = mkstemp(name);
	struct sigaction set = { .sa_handler = ignore };

	CHECK(file >= 0 && !sigaction(SIGUSR1, &set, NULL));
	for (int i = 0; i < 4; i++)
		lock_files(file, name);
	CHECK(fcntl(file, F_GETFD) == 0 && !fcntl(file, F_SETFD, FD_CLOEXEC) && fcntl(file, F_GETFD) == 1);
	unlink(name);
	close(file);
}

static void case_queues(void)
{
	struct mq_attr attributes = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	struct timespec soon;
	char name[64], got[8];
	mqd_t queue;

	snprintf(name, sizeof name, "/causal-calls-%d", (int)getpid());
	queue = mq_open(name, O_RDWR | O_CREAT, 0600, &attributes);
	if (queue == (mqd_t)-1) { /* not on this system */
		work_for(0.4);
		return;
	}
	mq_unlink(name);
	for (int i = 0; i < 200; i++) {
		CHECK(!mq_send(queue, "hello", 6, 1));
		clock_gettime(CLOCK_REALTIME, &soon);
		soon.tv_nsec += soon.tv_nsec < 990000000 ? 1000000 : 0;
		CHECK(mq_timedsend(queue, "x", 2, 1, &soon) == -1 && errno == ETIMEDOUT);
		CHECK(mq_receive(queue, got, sizeof got, NULL) == 6 && !strcmp(got, "hello"));
		CHECK(mq_timedreceive(queue, got, sizeof got, NULL, &soon) == -1 && errno == ETIMEDOUT);
		work_for(0.002);
	}
	mq_close(queue);
}

/* ---- streams ------------------------------------------------------------------------------------------ */
enum { LINES = 3000 };

static void *produce(void *p)
{
	FILE *out = p;

	for (int i = 0; i < LINES; i++) {
		CHECK(fprintf(out, "%d %g %s\n", i, i / 4.0, "text") > 0);
		CHECK(fputs("second", out) >= 0 && fputc('\n', out) == '\n');
		CHECK(fwrite("third\n", 1, 6, out) == 6);
		if (i % 10 == 0)
			work_once();
	}
	CHECK(!fclose(out));
	return NULL;
}

static void case_streams(void)
{
	for (double end = now() + 0.5; now() < end;) {
		char *line = NULL, text[64], third[6];
		size_t room = 0;
		pthread_t thread;
		FILE *in, *out;
		int ends[2], n;
		double x;

		CHECK(!pipe(ends) && (in = fdopen(ends[0], "r")) && (out = fdopen(ends[1], "w")));
		CHECK(!pthread_create(&thread, NULL, produce, out));
		for (int i = 0; i < LINES; i++) {
			CHECK(getline(&line, &room, in) > 0);
			CHECK(sscanf(line, "%d %lf %63s", &n, &x, text) == 3);
			CHECK(n == i && x == i / 4.0 && !strcmp(text, "text"));
			CHECK(fgetc(in) == 's' && getc_unlocked(in) == 'e');
			CHECK(fgets(text, sizeof text, in) && !strcmp(text, "cond\n"));
			CHECK(fread(third, 1, 6, in) == 6 && !memcmp(third, "third\n", 6));
			if (i % 10 == 0)
				work_once();
		}
		CHECK(fgetc(in) == EOF && feof(in) && !fclose(in));
		CHECK(!pthread_join(thread, NULL));
		free(line);
	}
}

/* A thread is cancelled in a call of each kind. */
static void *read_forever(void *p)
{
	return (void *)(intptr_t)fgetc(p);
}

static void *getline_forever(void *p)
{
	static char *line;
	static size_t room;

	return (void *)(intptr_t)getline(&line, &room, p);
}

static void *raw_forever(void *p)
{
	char c;

	(void)p;
	sleep(100);
	return (void *)(intptr_t)read(0, &c, 1);
}

static void *sleep_forever(void *p)
{
	thrd_sleep(&(struct timespec){ 100, 0 }, NULL);
	return p;
}

static void case_cancel(void)
{
	static void *(*const runs[])(void *) = { read_forever, getline_forever, raw_forever, sleep_forever };

	for (int i = 0; i < 40; i++) {
		pthread_t thread;
		void *result;
		int ends[2];
		FILE *in;

		CHECK(!pipe(ends) && (in = fdopen(ends[0], "r")));
		CHECK(!pthread_create(&thread, NULL, runs[i % 4], in));
		work_for(0.01);
		CHECK(!pthread_cancel(thread) && !pthread_join(thread, &result) &&
		      result == PTHREAD_CANCELED);
		close(ends[1]);
		if (i % 4 > 1) /* the others' lock is gone with them */
			fclose(in);
	}
}

/* ---- processes ---------------------------------------------------------------------------------------- */
static int told;

static void first_handler(void)
{
	CHECK(write(told, "1", 1) == 1);
}

static void second_handler(void)
{
	CHECK(write(told, "2", 1) == 1);
}

static void end_as(int how)
{
	CHECK(!atexit(first_handler) && !atexit(second_handler) && !at_quick_exit(first_handler));
	switch (how) {
	case 0:
		exit(30);
	case 1:
		_exit(31);
	case 2:
		_Exit(32);
	case 3:
		quick_exit(33);
	default:
		syscall(SYS_exit_group, 34);
	}
}

static void case_ends(void)
{
	static const char *const expected[] = { "21", "", "", "1", "" };

	for (int i = 0; i < 20; i++) {
		int ends[2], status;
		char got[4] = "";
		pid_t child;

		CHECK(!pipe(ends));
		told = ends[1];
		child = fork();
		CHECK(child >= 0);
		if (!child) {
			work_for(0.02);
			end_as(i % 5);
		}
		close(ends[1]);
		CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
		CHECK(WEXITSTATUS(status) == 30 + i % 5);
		CHECK(read(ends[0], got, 3) >= 0 && read(ends[0], got + 2, 1) == 0);
		CHECK(!strcmp(got, expected[i % 5]));
		close(ends[0]);
	}
}

static void little(void)
{
	work_for(0.05);
}

/* Shells, and what they start: it takes part, since the environment is passed on. */
static void case_shells(void)
{
	char command[4200], line[64];

	for (int i = 0; i < 4; i++) {
		FILE *in;

		CHECK(WEXITSTATUS(system("exit 3")) == 3);
		snprintf(command, sizeof command, "exec %s little", self);
		in = popen(command, "r");
		CHECK(in && fgets(line, sizeof line, in) && !strcmp(line, "little: good\n"));
		CHECK(pclose(in) == 0);
		CHECK((in = popen("cat >/dev/null; exit 9", "w")) && fputs("text", in) >= 0);
		CHECK(WEXITSTATUS(pclose(in)) == 9);
		CHECK(system(NULL));
	}
	snprintf(command, sizeof command, "echo \"$LD_PRELOAD\" | grep -q causal-rt");
	CHECK(system(command) == 0 || !getenv("CAUSAL_SESSION"));
}

/* ---- signals ------------------------------------------------------------------------------------------ */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static volatile sig_atomic_t came;

static void note(int signal)
{
	came = signal;
}

static void *send_soon(void *thread)
{
	work_for(0.02);
	pthread_kill(*(pthread_t *)thread, SIGUSR1);
	return NULL;
}

static void case_old_signals(void)
{
	pthread_t here = pthread_self(), sender;

	CHECK(sigset(SIGUSR1, note) == SIG_DFL);
	for (int i = 0; i < 10; i++) {
		came = 0;
		CHECK(!sighold(SIGUSR1) && !raise(SIGUSR1) && !came);
		CHECK(!sigrelse(SIGUSR1) && came == SIGUSR1);
		came = 0;
		CHECK(!sighold(SIGUSR1) && !sigqueue(getpid(), SIGUSR1, (union sigval){ 0 }) && !came);
		CHECK(sigpause(SIGUSR1) == -1 && errno == EINTR && came == SIGUSR1);
		came = 0;
		CHECK(!pthread_create(&sender, NULL, send_soon, &here));
		CHECK(sigpause(SIGUSR1) == -1 && errno == EINTR &&
		      came == SIGUSR1); /* and for nothing else */
		CHECK(!pthread_join(sender, NULL) && !sigrelse(SIGUSR1));
		CHECK(!(sigblock(1 << (SIGUSR1 - 1)) & 1 << (SIGUSR1 - 1)));
		CHECK(sigsetmask(0) & 1 << (SIGUSR1 - 1));
		/* everything blocked and ignored: it is sampled all the same */
		sigsetmask(-1);
		for (int signal = 1; signal < 32; signal++)
			if (signal != SIGKILL && signal != SIGSTOP)
				CHECK(!sighold(signal));
		work_for(0.05);
		sigsetmask(0);
		CHECK(!sigignore(SIGURG) && sigset(SIGURG, SIG_DFL) == SIG_IGN);
		CHECK(!siginterrupt(SIGURG, 1));
	}
}

/* ---- threads ------------------------------------------------------------------------------------------ */
static atomic_bool may_end;

static void *yield(void *p)
{
	for (int i = 0; i < 200 || !atomic_load(&may_end); i++) {
		thrd_yield();
		work_once();
	}
	return p;
}

static void case_limits(void)
{
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
	pthread_t thread;
	struct timespec past = { 1, 0 };
	void *result;

	for (double end = now() + 0.5; now() < end;) {
		atomic_store(&may_end, false);
		CHECK(!pthread_create(&thread, NULL, yield, &lock));
		CHECK(pthread_clockjoin_np(thread, &result, CLOCK_MONOTONIC, &past) == ETIMEDOUT);
		CHECK(!pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &past));
		CHECK(pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &past) != 0);
		CHECK(!pthread_rwlock_unlock(&lock));
		CHECK(thrd_sleep(&(struct timespec){ 0, 1000000 }, NULL) == 0);
		CHECK(syscall(SYS_nanosleep, &(struct timespec){ 0, 1000000 }, NULL) == 0);
		atomic_store(&may_end, true);
		CHECK(!pthread_join(thread, &result) && result == &lock);
	}
}

/* ---- conditions ------------------------------------------------------------------------------------------- */
enum { TURNS = 10000 };
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
} side[2];
static atomic_int turn;
/* alone up to 5, on a busy machine; without a look at early signals up to 16 */
static atomic_uint slept_through;

/* Without the lock, as programs do that count on being in the wait before the other side can answer. */
static void give_turn(int to)
{
	atomic_store(&turn, to);
	CHECK(!pthread_cond_signal(&side[to].changed));
}

static void wait_for_turn(int me)
{
	struct timespec until;

	CHECK(!pthread_mutex_lock(&side[me].lock));
	other_work();
	while (atomic_load(&turn) != me) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 1;
		slept_through +=
			pthread_cond_timedwait(&side[me].changed, &side[me].lock, &until) == ETIMEDOUT;
	}
	CHECK(!pthread_mutex_unlock(&side[me].lock));
}

static void *answers(void *unused)
{
	for (int i = 0; i < TURNS; i++) {
		wait_for_turn(1);
		other_work();
		give_turn(0);
	}
	return unused;
}

static void *works_on(void *unused)
{
	while (!atomic_load(&may_end))
		work_once();
	return unused;
}

static void case_conditions(void)
{
	pthread_t other, busy;

	for (int i = 0; i < 2; i++)
		CHECK(!pthread_mutex_init(&side[i].lock, NULL) && !pthread_cond_init(&side[i].changed, NULL));
	work_for(0.1);
	CHECK(!pthread_create(&busy, NULL, works_on, NULL) && !pthread_create(&other, NULL, answers, NULL));
	for (int i = 0; i < TURNS; i++) {
		wait_for_turn(0);
		give_turn(1);
	}
	CHECK(!pthread_join(other, NULL));
	atomic_store(&may_end, true);
	CHECK(!pthread_join(busy, NULL));
	CHECK(slept_through <= TURNS / 1000);
}

/* ---- conditions, by who is left alone between a look at the clock and the wait ----------------------------------*/
enum { ROUNDS = 1000 }; /* of 4 ms */

/* With the lock held, as it should be: nobody can be told meanwhile. */
static void take_turn(int me)
{
	struct timespec now;

	CHECK(!pthread_mutex_lock(&side[0].lock));
	clock_gettime(CLOCK_REALTIME, &now);
	work_for(0.002);
	while (atomic_load(&turn) != me)
		CHECK(!pthread_cond_wait(&side[me].changed, &side[0].lock));
	give_turn(1 - me);
	CHECK(!pthread_mutex_unlock(&side[0].lock));
}

static void *takes_turns(void *me)
{
	for (int i = 0; i < ROUNDS; i++)
		take_turn(me != NULL);
	return NULL;
}

static void case_left(void)
{
	pthread_t other;

	CHECK(!pthread_mutex_init(&side[0].lock, NULL));
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_cond_init(&side[i].changed, NULL));
	CHECK(!pthread_create(&other, NULL, takes_turns, &turn));
	takes_turns(NULL);
	CHECK(!pthread_join(other, NULL));
}

int main(int argc, char **argv)
{
	static const struct app_case cases[] = {
		{ "files", case_files },
		{ "locks", case_locks },
		{ "queues", case_queues },
		{ "streams", case_streams },
		{ "cancel", case_cancel },
		{ "ends", case_ends },
		{ "shells", case_shells },
		{ "little", little },
		{ "old_signals", case_old_signals },
		{ "limits", case_limits },
		{ "conditions", case_conditions },
		{ "left", case_left },
	};

	CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
	return RUN_CASE(cases, argc, argv);
}
