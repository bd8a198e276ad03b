/* A shim between Python and the C library: system calls on files below one folder are counted, and one of them fails.

   cc -shared -fPIC -o shim.so shim.c -ldl, then LD_PRELOAD=shim.so. The test steers it from inside the process (ctypes):
   shim_watch, shim_arm, shim_enter (the Python seam has seen the next call), and reads what it counted. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define SHORT (-1)

static const char *const KINDS[] = {
    "open",  "fstat", "stat",  "lseek",  "read",  "pread", "write",   "pwrite", "ftruncate", "truncate", "fdatasync", "fsync",
    "flock", "mkdir", "chmod", "fchmod", "dup",   "close", "link",    "rename", "unlink",    "rmdir",    "listdir",   "readlink",
};
enum { OPEN, FSTAT, STAT, LSEEK, READ, PREAD, WRITE, PWRITE, FTRUNCATE, TRUNCATE, FDATASYNC, FSYNC,
       FLOCK, MKDIR, CHMOD, FCHMOD, DUP, CLOSE, LINK, RENAME, UNLINK, RMDIR, LISTDIR, READLINK, COUNT };

static char folder[4096];
static size_t length;
static long seen[COUNT], passed[COUNT]; /* calls in all; those that the Python seam has not seen */
static int inside, armed_kind = -1, armed_error, armed_forever;
static long armed_nth, fired;

EXPORT void shim_watch(const char *path) {
  snprintf(folder, sizeof folder, "%s", path);
  length = strlen(folder);
  memset(seen, 0, sizeof seen);
  memset(passed, 0, sizeof passed);
  armed_kind = -1, inside = 0;
}

EXPORT void shim_arm(const char *kind, long nth, int error, int forever) {
  for (armed_kind = COUNT - 1; armed_kind >= 0 && strcmp(KINDS[armed_kind], kind); armed_kind--) {
  }
  armed_nth = nth, armed_error = error, armed_forever = forever, fired = 0;
}

EXPORT void shim_stop(void) { length = 0, armed_kind = -1; }
EXPORT void shim_enter(int is_inside) { inside = is_inside; }
EXPORT long shim_fired(void) { return fired; }
EXPORT int shim_kinds(void) { return COUNT; }
EXPORT const char *shim_kind(int kind) { return KINDS[kind]; }
EXPORT long shim_seen(int kind) { return seen[kind]; }
EXPORT long shim_passed(int kind) { return passed[kind]; }

static int is_below(const char *path) {
  return length && !strncmp(path, folder, length) && (path[length] == '/' || path[length] == '\0' || path[length] == ' ');
}

static int fd_is_below(int fd) {
  char name[64], path[4352];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  long size = syscall(SYS_readlink, name, path, sizeof path - 1);
  if (size < 0)
    return 0;
  path[size] = '\0';
  return is_below(path);
}

static int path_is_below(int fd, const char *path) {
  return path && (path[0] == '/' ? is_below(path) : fd != AT_FDCWD && fd_is_below(fd));
}

/* What shall happen to this call: 0 = it is made, SHORT = half of it, else the error. */
static int meet(int kind, int concerns) {
  if (!concerns)
    return 0;
  long turn = ++seen[kind];
  passed[kind] += !inside;
  if (kind != armed_kind || turn < armed_nth || (turn > armed_nth && !armed_forever))
    return 0;
  fired++;
  return armed_error;
}

static int meet_fd(int kind, int fd) { return length ? meet(kind, fd_is_below(fd)) : 0; }
static int meet_path(int kind, int fd, const char *path) { return length ? meet(kind, path_is_below(fd, path)) : 0; }

#define REAL(type, name, ...)                                                                                          \
  static type (*real)(__VA_ARGS__);                                                                                    \
  if (!real)                                                                                                           \
  real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)
#define FAIL(error, result)                                                                                            \
  do {                                                                                                                 \
    errno = (error);                                                                                                   \
    return (result);                                                                                                   \
  } while (0)

#define ON_FD(type, name, kind, parameters, arguments, fd, ...)                                                        \
  EXPORT type name parameters {                                                                                        \
    REAL(type, name, __VA_ARGS__);                                                                                     \
    int error = meet_fd(kind, fd);                                                                                     \
    if (error)                                                                                                         \
      FAIL(error, (type)-1);                                                                                           \
    return real arguments;                                                                                             \
  }
#define ON_PATH(type, name, kind, parameters, arguments, fd, path, ...)                                                \
  EXPORT type name parameters {                                                                                        \
    REAL(type, name, __VA_ARGS__);                                                                                     \
    int error = meet_path(kind, fd, path);                                                                             \
    if (error)                                                                                                         \
      FAIL(error, (type)-1);                                                                                           \
    return real arguments;                                                                                             \
  }

ON_FD(int, fstat, FSTAT, (int fd, struct stat *s), (fd, s), fd, int, struct stat *)
ON_FD(int, fstat64, FSTAT, (int fd, struct stat64 *s), (fd, s), fd, int, struct stat64 *)
ON_FD(off_t, lseek, LSEEK, (int fd, off_t at, int how), (fd, at, how), fd, int, off_t, int)
ON_FD(off64_t, lseek64, LSEEK, (int fd, off64_t at, int how), (fd, at, how), fd, int, off64_t, int)
ON_FD(ssize_t, read, READ, (int fd, void *to, size_t n), (fd, to, n), fd, int, void *, size_t)
ON_FD(ssize_t, pread, PREAD, (int fd, void *to, size_t n, off_t at), (fd, to, n, at), fd, int, void *, size_t, off_t)
ON_FD(ssize_t, pread64, PREAD, (int fd, void *to, size_t n, off64_t at), (fd, to, n, at), fd, int, void *, size_t, off64_t)
ON_FD(int, ftruncate, FTRUNCATE, (int fd, off_t n), (fd, n), fd, int, off_t)
ON_FD(int, ftruncate64, FTRUNCATE, (int fd, off64_t n), (fd, n), fd, int, off64_t)
ON_FD(int, fdatasync, FDATASYNC, (int fd), (fd), fd, int)
ON_FD(int, fsync, FSYNC, (int fd), (fd), fd, int)
ON_FD(int, flock, FLOCK, (int fd, int how), (fd, how), fd, int, int)
ON_FD(int, fchmod, FCHMOD, (int fd, mode_t mode), (fd, mode), fd, int, mode_t)
ON_PATH(int, stat, STAT, (const char *p, struct stat *s), (p, s), AT_FDCWD, p, const char *, struct stat *)
ON_PATH(int, stat64, STAT, (const char *p, struct stat64 *s), (p, s), AT_FDCWD, p, const char *, struct stat64 *)
ON_PATH(int, lstat, STAT, (const char *p, struct stat *s), (p, s), AT_FDCWD, p, const char *, struct stat *)
ON_PATH(int, lstat64, STAT, (const char *p, struct stat64 *s), (p, s), AT_FDCWD, p, const char *, struct stat64 *)
ON_PATH(int, fstatat, STAT, (int fd, const char *p, struct stat *s, int f), (fd, p, s, f), fd, p, int, const char *, struct stat *, int)
ON_PATH(int, fstatat64, STAT, (int fd, const char *p, struct stat64 *s, int f), (fd, p, s, f), fd, p, int, const char *, struct stat64 *, int)
ON_PATH(int, truncate, TRUNCATE, (const char *p, off_t n), (p, n), AT_FDCWD, p, const char *, off_t)
ON_PATH(int, truncate64, TRUNCATE, (const char *p, off64_t n), (p, n), AT_FDCWD, p, const char *, off64_t)
ON_PATH(int, mkdir, MKDIR, (const char *p, mode_t m), (p, m), AT_FDCWD, p, const char *, mode_t)
ON_PATH(int, mkdirat, MKDIR, (int fd, const char *p, mode_t m), (fd, p, m), fd, p, int, const char *, mode_t)
ON_PATH(int, chmod, CHMOD, (const char *p, mode_t m), (p, m), AT_FDCWD, p, const char *, mode_t)
ON_PATH(int, fchmodat, CHMOD, (int fd, const char *p, mode_t m, int f), (fd, p, m, f), fd, p, int, const char *, mode_t, int)
ON_PATH(int, unlink, UNLINK, (const char *p), (p), AT_FDCWD, p, const char *)
ON_PATH(int, unlinkat, UNLINK, (int fd, const char *p, int f), (fd, p, f), fd, p, int, const char *, int)
ON_PATH(int, rmdir, RMDIR, (const char *p), (p), AT_FDCWD, p, const char *)
ON_PATH(int, rename, RENAME, (const char *p, const char *q), (p, q), AT_FDCWD, q, const char *, const char *)
ON_PATH(int, renameat, RENAME, (int fd, const char *p, int to, const char *q), (fd, p, to, q), to, q, int, const char *, int, const char *)
ON_PATH(int, link, LINK, (const char *p, const char *q), (p, q), AT_FDCWD, q, const char *, const char *)
ON_PATH(int, linkat, LINK, (int fd, const char *p, int to, const char *q, int f), (fd, p, to, q, f), to, q, int, const char *, int, const char *, int)
ON_PATH(ssize_t, readlink, READLINK, (const char *p, char *to, size_t n), (p, to, n), AT_FDCWD, p, const char *, char *, size_t)

EXPORT DIR *opendir(const char *path) {
  REAL(DIR *, opendir, const char *);
  int error = meet_path(LISTDIR, AT_FDCWD, path);
  if (error)
    FAIL(error, NULL);
  return real(path);
}

#define WRITES(name, kind, parameters, whole, half, ...)                                                               \
  EXPORT ssize_t name parameters {                                                                                     \
    REAL(ssize_t, name, __VA_ARGS__);                                                                                  \
    int error = meet_fd(kind, fd);                                                                                     \
    if (error > 0)                                                                                                     \
      FAIL(error, -1);                                                                                                 \
    return error == SHORT ? real half : real whole;                                                                    \
  }

WRITES(write, WRITE, (int fd, const void *from, size_t n), (fd, from, n), (fd, from, n / 2), int, const void *, size_t)
WRITES(pwrite, PWRITE, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at), (fd, from, n / 2, at), int,
       const void *, size_t, off_t)
WRITES(pwrite64, PWRITE, (int fd, const void *from, size_t n, off64_t at), (fd, from, n, at), (fd, from, n / 2, at), int,
       const void *, size_t, off64_t)

/* Linux closes, whatever it says. */
EXPORT int close(int fd) {
  REAL(int, close, int);
  int error = meet_fd(CLOSE, fd);
  int result = real(fd);
  if (error)
    FAIL(error, -1);
  return result;
}

#define OPENS(name, parameters, fd, path, real_call, ...)                                                              \
  EXPORT int name parameters {                                                                                         \
    REAL(int, name, __VA_ARGS__);                                                                                      \
    va_list rest;                                                                                                      \
    va_start(rest, flags);                                                                                             \
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0;                                                  \
    va_end(rest);                                                                                                      \
    int error = meet_path(OPEN, fd, path);                                                                             \
    if (error)                                                                                                         \
      FAIL(error, -1);                                                                                                 \
    return real_call;                                                                                                  \
  }

OPENS(open, (const char *path, int flags, ...), AT_FDCWD, path, real(path, flags, mode), const char *, int, ...)
OPENS(open64, (const char *path, int flags, ...), AT_FDCWD, path, real(path, flags, mode), const char *, int, ...)
OPENS(openat, (int fd, const char *path, int flags, ...), fd, path, real(fd, path, flags, mode), int, const char *, int, ...)
OPENS(openat64, (int fd, const char *path, int flags, ...), fd, path, real(fd, path, flags, mode), int, const char *, int, ...)

#define DUPS(name)                                                                                                     \
  EXPORT int name(int fd, int command, ...) {                                                                          \
    REAL(int, name, int, int, ...);                                                                                    \
    va_list rest;                                                                                                      \
    va_start(rest, command);                                                                                           \
    void *argument = va_arg(rest, void *);                                                                             \
    va_end(rest);                                                                                                      \
    int error = command == F_DUPFD_CLOEXEC ? meet_fd(DUP, fd) : 0;                                                     \
    if (error)                                                                                                         \
      FAIL(error, -1);                                                                                                 \
    return real(fd, command, argument);                                                                                \
  }

DUPS(fcntl)
DUPS(fcntl64)
