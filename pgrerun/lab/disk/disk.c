/*
 * A disk that makes one wait: preloaded into the processes of one cluster (LD_PRELOAD).
 *
 * A request for one of the cluster's files is done by the kernel at once, and then its process
 * sleeps until a disk that serves one request at a time would have finished it. That disk is a few
 * numbers in a file that all processes map: when it will be free, and how long a request takes.
 * Whoever comes books his turn there and leaves, so the lock is held for less than a microsecond; a
 * process that is killed with it leaves it to the next (a robust mutex).
 *
 * Not seen here: mapped memory, io_uring, and room that posix_fallocate makes in a file.
 * All times are in nanoseconds of CLOCK_MONOTONIC.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind { READ, WRITE, FLUSH, KINDS };

struct tally {
    int64_t requests, bytes;
    int64_t busy;   /* that the disk worked for them */
    int64_t queued; /* that they stood behind others */
    int64_t late;   /* requests that took longer than this: the machine's own disk was slower */
};

/* `_LAYOUT` in slowed.py says the same. */
struct disk {
    union {
        pthread_mutex_t mutex;
        char room[64];
    } lock;
    /* what it is: set by Python, while it serves nobody */
    int64_t serving;
    int64_t mean[KINDS]; /* a kind whose mean is 0 passes the disk by */
    int64_t drawn;       /* whether times are exponential with that mean */
    int64_t seed;
    int64_t offset;      /* -1, or only requests at this place of a file are slow */
    int64_t early;       /* how late this machine wakes a sleeper, as a rule */
    char only[128];      /* only files whose path below the directory begins so */
    /* what becomes of it */
    int64_t attached; /* processes that have this loaded, by start, not by fork */
    int64_t free_at;  /* when the last booked request is done */
    int64_t draws;
    struct tally tally[KINDS];
};

/* ---- the disk, by any clock */

size_t disk_size(void)
{
    return sizeof(struct disk);
}

void disk_make(struct disk *disk)
{
    pthread_mutexattr_t kind;

    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&disk->lock.mutex, &kind);
}

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void sleep_until(int64_t then)
{
    struct timespec until = {then / 1000000000, then % 1000000000};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0) == EINTR)
        ;
}

static int ascending(const void *a, const void *b)
{
    int64_t left = *(const int64_t *) a, right = *(const int64_t *) b;

    return left < right ? -1 : left > right;
}

/* Median of how much too late one is woken who asked to be woken punctually. */
int64_t disk_lateness(void)
{
    enum { SLEEPS = 21 };
    int64_t late[SLEEPS], then;
    int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), turn;

    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    for (turn = 0; turn < SLEEPS; turn++) {
        then = now() + 1000000;
        sleep_until(then);
        late[turn] = now() - then;
    }
    prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
    qsort(late, SLEEPS, sizeof late[0], ascending);
    return late[SLEEPS / 2];
}

/* The splitmix64 generator's number at this place of its sequence. */
static uint64_t scrambled(uint64_t number)
{
    number *= 0x9e3779b97f4a7c15u;
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
    number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
    return number ^ (number >> 31);
}

static int64_t drawn(struct disk *disk, int64_t mean)
{
    uint64_t bits = scrambled(scrambled((uint64_t) disk->seed) + (uint64_t) ++disk->draws);

    return (int64_t) (-log(((bits >> 11) + 1) * 0x1p-53) * mean); /* of a number in (0, 1] */
}

/* Book a request that arrives at `now`; when it will be done. The caller holds the lock. */
int64_t disk_serve(struct disk *disk, int kind, int64_t bytes, int64_t now)
{
    struct tally *tally = &disk->tally[kind];
    int64_t start = now > disk->free_at ? now : disk->free_at, taken = disk->mean[kind];

    tally->requests++;
    tally->bytes += bytes;
    if (disk->drawn && taken)
        taken = drawn(disk, taken);
    if (!taken)
        return 0;
    tally->busy += taken;
    tally->queued += start - now;
    return disk->free_at = start + taken;
}

/* ---- the processes that wait for it */

static struct disk *disk;
static char directory[4096]; /* with a slash at its end */

__attribute__((constructor)) static void attach(void)
{
    const char *path = getenv("PGRERUN_DISK"), *files = getenv("PGRERUN_DISK_FILES");
    int file = path && files ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *place;

    if (file < 0)
        return;
    snprintf(directory, sizeof directory, "%s/", files);
    place = mmap(0, sizeof *disk, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (place == MAP_FAILED)
        return;
    disk = place;
    __atomic_fetch_add(&disk->attached, 1, __ATOMIC_RELAXED);
}

/* Whether an open file is one that the disk makes slow. */
static int concerned(int file, int64_t offset)
{
    char link[40], path[4096];
    ssize_t length;
    size_t above = strlen(directory);

    if (disk->offset >= 0 && offset != disk->offset)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    length = readlink(link, path, sizeof path - 1);
    if (length < (ssize_t) above)
        return 0;
    path[length] = 0;
    return !strncmp(path, directory, above) &&
           !strncmp(path + above, disk->only, strlen(disk->only));
}

/* Book a request; when it will be done, or 0 for at once. `offset` -1 is where the file stands. */
static int64_t arrive(int kind, int file, int64_t bytes, int64_t offset)
{
    int before = errno;
    int64_t done = 0;

    if (!disk || !disk->serving)
        return 0;
    if (offset < 0)
        offset = kind == FLUSH ? 0 : lseek(file, 0, SEEK_CUR);
    if (concerned(file, offset < 0 ? 0 : offset)) {
        if (pthread_mutex_lock(&disk->lock.mutex) == EOWNERDEAD)
            pthread_mutex_consistent(&disk->lock.mutex);
        done = disk_serve(disk, kind, bytes, now());
        pthread_mutex_unlock(&disk->lock.mutex);
    }
    errno = before;
    return done;
}

/* Sleep until the disk is done; the last moment awake, or one would always be late. */
static void leave(int kind, int64_t done)
{
    static __thread int punctual; /* Linux lets others sleep for 50 microseconds more */
    int before = errno;

    if (!done)
        return;
    if (!punctual)
        punctual = prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0) == 0;
    if (now() > done)
        __atomic_fetch_add(&disk->tally[kind].late, 1, __ATOMIC_RELAXED);
    sleep_until(done - disk->early);
    while (now() < done)
        ;
    errno = before;
}

static int64_t total(const struct iovec *parts, int count)
{
    int64_t bytes = 0;

    while (count-- > 0)
        bytes += parts[count].iov_len;
    return bytes;
}

/* Define `name` as the function of that name with the disk around it. */
#define SLOW(type, name, parameters, arguments, kind, bytes, offset)                               \
    type name parameters                                                                           \
    {                                                                                              \
        static type(*real) parameters;                                                             \
        int64_t done = arrive(kind, file, bytes, offset);                                          \
        type result;                                                                               \
                                                                                                   \
        if (!real)                                                                                 \
            *(void **) &real = dlsym(RTLD_NEXT, #name);                                            \
        result = real arguments;                                                                   \
        leave(kind, done);                                                                         \
        return result;                                                                             \
    }

/* One place of a file, in one piece or in several; `large` names are those for large files. */
#define SLOW_AT(name, large, kind, buffer_type)                                                    \
    SLOW(ssize_t, name, (int file, buffer_type buffer, size_t size, off_t offset),                 \
         (file, buffer, size, offset), kind, size, offset)                                         \
    SLOW(ssize_t, large, (int file, buffer_type buffer, size_t size, off64_t offset),              \
         (file, buffer, size, offset), kind, size, offset)
#define SLOW_PARTS(name, large, kind)                                                              \
    SLOW(ssize_t, name, (int file, const struct iovec *parts, int count, off_t offset),            \
         (file, parts, count, offset), kind, total(parts, count), offset)                          \
    SLOW(ssize_t, large, (int file, const struct iovec *parts, int count, off64_t offset),         \
         (file, parts, count, offset), kind, total(parts, count), offset)
#define SLOW_FLAGGED(name, large, kind)                                                            \
    SLOW(ssize_t, name, (int file, const struct iovec *parts, int count, off_t offset, int flags), \
         (file, parts, count, offset, flags), kind, total(parts, count), offset)                   \
    SLOW(ssize_t, large,                                                                           \
         (int file, const struct iovec *parts, int count, off64_t offset, int flags),              \
         (file, parts, count, offset, flags), kind, total(parts, count), offset)

SLOW_AT(pread, pread64, READ, void *)
SLOW_AT(pwrite, pwrite64, WRITE, const void *)
SLOW_PARTS(preadv, preadv64, READ)
SLOW_PARTS(pwritev, pwritev64, WRITE)
SLOW_FLAGGED(preadv2, preadv64v2, READ)
SLOW_FLAGGED(pwritev2, pwritev64v2, WRITE)
/* releases before 12 */
SLOW(ssize_t, read, (int file, void *buffer, size_t size), (file, buffer, size), READ, size, -1)
SLOW(ssize_t, write, (int file, const void *buffer, size_t size), (file, buffer, size), WRITE,
     size, -1)
SLOW(int, fsync, (int file), (file), FLUSH, 0, -1)
SLOW(int, fdatasync, (int file), (file), FLUSH, 0, -1)
