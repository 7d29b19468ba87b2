/* A clock that jumps, for LD_PRELOAD: the time of day plus the seconds in the file that CHAOS_CLOCK names.

   Only the time of day: a machine's monotonic clock does not jump, and sleeps do not depend on it. libfaketime is not
   used because its `clock_nanosleep` fails with EINVAL for Python's sleeps while the offset changes (0.9.10). */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long jump(void) {
  const char *name = getenv("CHAOS_CLOCK");
  char text[32] = "";
  int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
  if (file >= 0) {
    if (read(file, text, sizeof text - 1) < 0) text[0] = 0;
    close(file);
  }
  return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = syscall(SYS_clock_gettime, clock, now);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += jump();
  return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
  int failed = syscall(SYS_gettimeofday, now, zone);
  if (!failed) now->tv_sec += jump();
  return failed;
}

time_t time(time_t *to) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (to) *to = now.tv_sec;
  return now.tv_sec;
}
