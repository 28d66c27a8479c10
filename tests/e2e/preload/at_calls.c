/* Loaded in front of the C library by the tests: ends the process at its n-th call of one kind, or makes calls fail.

   Kill: FAULT_CALL (write, pwrite, sync, rename, unlink, truncate), FAULT_AT (1 is the first), FAULT_WHEN (before,
   after). Counted are calls on regular files from fault_arm() on, which the program calls when it begins to log.

   Fail: FAULT_ERRNO, FAULT_UNDER (a folder), FAULT_FLAG (a file: while it is there, calls on files of that folder
   fail). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_int armed;
static atomic_int count;

void fault_arm(void) { atomic_store(&armed, 1); }
int fault_count(void) { return atomic_load(&count); }

static int is_regular(int descriptor)
{
    struct stat status;
    return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

/* Whether this is the call to die at. */
static int is_time(const char *call)
{
    const char *wanted = getenv("FAULT_CALL");
    if (!wanted || strcmp(wanted, call) != 0 || !atomic_load(&armed))
        return 0;
    return atomic_fetch_add(&count, 1) + 1 == atoi(getenv("FAULT_AT"));
}

static void die(int now, const char *when)
{
    if (now && strcmp(getenv("FAULT_WHEN"), when) == 0) {
        kill(getpid(), SIGKILL);
        for (;;)
            pause();
    }
}

static int fails_at(const char *path)
{
    const char *under = getenv("FAULT_UNDER"), *flag = getenv("FAULT_FLAG");
    if (!under || strncmp(path, under, strlen(under)) != 0 || access(flag, F_OK) != 0)
        return 0;
    errno = atoi(getenv("FAULT_ERRNO"));
    return 1;
}

static int fails_on(int descriptor)
{
    char link[64], path[4096];
    if (!getenv("FAULT_UNDER"))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return fails_at(path);
}

/* Dies or fails around a call; `on` says whether it is about a file of the kind that counts. */
#define AROUND(kind, on, fail, call)             \
    do {                                         \
        int saved = errno;                       \
        int now = (on) && is_time(kind);         \
        die(now, "before");                      \
        if (fail)                                \
            return -1;                           \
        errno = saved;                           \
        __typeof__(call) result = (call);        \
        saved = errno;                           \
        die(now, "after");                       \
        errno = saved;                           \
        return result;                           \
    } while (0)

#define NEXT(name)                                            \
    static __typeof__(&name) next;                            \
    if (!next)                                                \
        next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int descriptor, const void *bytes, size_t length)
{
    NEXT(write);
    AROUND("write", is_regular(descriptor), fails_on(descriptor), next(descriptor, bytes, length));
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off64_t at)
{
    NEXT(pwrite64);
    AROUND("pwrite", is_regular(descriptor), fails_on(descriptor), next(descriptor, bytes, length, at));
}

int fdatasync(int descriptor)
{
    NEXT(fdatasync);
    AROUND("sync", is_regular(descriptor), fails_on(descriptor), next(descriptor));
}

int fsync(int descriptor)
{
    NEXT(fsync);
    AROUND("sync", 1, fails_on(descriptor), next(descriptor));
}

int ftruncate64(int descriptor, off64_t length)
{
    NEXT(ftruncate64);
    AROUND("truncate", is_regular(descriptor), fails_on(descriptor), next(descriptor, length));
}

int rename(const char *from, const char *to)
{
    NEXT(rename);
    AROUND("rename", 1, fails_at(from), next(from, to));
}

int unlink(const char *path)
{
    NEXT(unlink);
    AROUND("unlink", 1, fails_at(path), next(path));
}

int unlinkat(int folder, const char *path, int flags)
{
    NEXT(unlinkat);
    AROUND("unlink", 1, fails_on(folder), next(folder, path, flags));
}

static int makes(int flags) { return (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0; }

/* Fails a call whose mode follows its flags, or passes it on. */
#define MAKING(name, fails, ...)                \
    do {                                        \
        NEXT(name);                             \
        va_list more;                           \
        va_start(more, flags);                  \
        mode_t mode = va_arg(more, mode_t);     \
        va_end(more);                           \
        if (makes(flags) && (fails))            \
            return -1;                          \
        return next(__VA_ARGS__, flags, mode);  \
    } while (0)

/* The same call has two names, one for programs that know files of more than 2 GiB. */
#define OPEN(name)                                                                               \
    int name(const char *path, int flags, ...) { MAKING(name, fails_at(path), path); }

#define OPENAT(name)                                                                             \
    int name(int folder, const char *path, int flags, ...)                                       \
    {                                                                                            \
        MAKING(name, path[0] == '/' ? fails_at(path) : fails_on(folder), folder, path);          \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
