/* bystander ID SECONDS EVENTS: a process that belongs to no job. It lives for SECONDS.
   Before a signal ends it, it reports the sender's pid, which the status does not
   show: 0 is a process outside the pid namespace of the storm. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv) {
	static const int ends[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
	sigset_t waited;
	siginfo_t from;
	struct timespec now, life;
	if (argc != 4)
		return 64;
	double seconds = atof(argv[2]);
	life.tv_sec = (time_t)seconds;
	life.tv_nsec = (long)((seconds - (double)life.tv_sec) * 1e9);
	sigemptyset(&waited);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		sigaddset(&waited, ends[i]);
	sigprocmask(SIG_BLOCK, &waited, NULL);
	int sig = sigtimedwait(&waited, &from, &life);
	if (sig < 0)
		return 0;
	clock_gettime(CLOCK_BOOTTIME, &now);
	dprintf(open(argv[3], O_WRONLY), "sender %s %lld.%03ld %d\n", argv[1], (long long)now.tv_sec,
		now.tv_nsec / 1000000, from.si_pid);
	signal(sig, SIG_DFL);
	raise(sig);
	sigprocmask(SIG_UNBLOCK, &waited, NULL);
	return 1;
}
