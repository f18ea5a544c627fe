/*
 * A disk that makes one wait: preloaded into the processes of one cluster (LD_PRELOAD).
 *
 * A request for one of the cluster's files is done by the kernel at once, and then its process
 * sleeps until a disk that serves one request at a time would have finished it. That disk is a few
 * numbers in a file that all processes map: when it will be free, and how long a request takes.
 * Whoever comes books his turn there and leaves, so the lock is held for less than a microsecond; a
 * process that is killed with it leaves it to the next (a robust mutex).
 *
 * It may have memory beside it, as a kernel's: what lies in there costs nothing, and of what it
 * wrote nobody waits for more than the flushes. And some processes' requests may come in pieces, as a
 * kernel reads ahead for who goes through a file, and gathers what he writes.
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
#include <sys/stat.h>
#include <sys/syscall.h>
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

enum { BLOCK = 8192, PLACES = 65536, NONE = -1 };

/* What lies in memory, by the order of its last use: a list, and buckets to find it by. */
struct memory {
    int32_t newest, oldest, used;
    int32_t bucket[PLACES]; /* the first place of each */
    struct place {
        int64_t file, block;
        int32_t newer, older, next; /* `next` in its bucket */
        int32_t dirty;
    } place[PLACES];
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
    int64_t blocks;      /* that its memory holds, at most PLACES; 0 without memory */
    int64_t ahead;       /* requests of a process that are served as one, if it gathers them */
    char only[128];      /* only files whose path below the directory begins so */
    char flushed[128];   /* and flushes of those alone whose path begins so */
    char gathering[128]; /* part of the title of processes whose requests come in pieces */
    /* what becomes of it */
    int64_t attached; /* processes that have this loaded, by start, not by fork */
    int64_t free_at;  /* when the last booked request is done */
    int64_t draws;
    struct tally tally[KINDS];
    struct memory memory;
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

/* ---- its memory; the caller holds the lock */

void disk_forget(struct disk *disk)
{
    int32_t turn;

    disk->memory.newest = disk->memory.oldest = NONE;
    disk->memory.used = 0;
    for (turn = 0; turn < PLACES; turn++)
        disk->memory.bucket[turn] = NONE;
}

static int32_t *bucket_of(struct memory *memory, int64_t file, int64_t block)
{
    return &memory->bucket[scrambled((uint64_t) file * PLACES + (uint64_t) block) % PLACES];
}

static void unlink_place(struct memory *memory, int32_t number)
{
    struct place *place = &memory->place[number];

    *(place->newer == NONE ? &memory->newest : &memory->place[place->newer].older) = place->older;
    *(place->older == NONE ? &memory->oldest : &memory->place[place->older].newer) = place->newer;
}

/*
 * Use a block of a file; whether it lies in memory. What it takes the place of is written by the
 * disk in its turn, for which nobody waits. Until memory is full for the first time all that was
 * there before counts as lying in it.
 */
static int use_block(struct disk *disk, int64_t file, int64_t block, int dirty, int64_t now)
{
    struct memory *memory = &disk->memory;
    int32_t *first = bucket_of(memory, file, block), *from, number;
    struct place *place;
    int known = 1;

    for (number = *first; number != NONE; number = memory->place[number].next)
        if (memory->place[number].file == file && memory->place[number].block == block)
            break;
    if (number != NONE) {
        unlink_place(memory, number);
    } else {
        if (memory->used < disk->blocks) {
            number = memory->used++;
        } else {
            known = 0;
            number = memory->oldest;
            place = &memory->place[number];
            if (place->dirty)
                disk_serve(disk, WRITE, BLOCK, now);
            unlink_place(memory, number);
            from = bucket_of(memory, place->file, place->block);
            while (*from != number)
                from = &memory->place[*from].next;
            *from = place->next;
        }
        /* after the other one has left its bucket, which may be the same */
        memory->place[number] = (struct place){file, block, NONE, NONE, *first, 0};
        *first = number;
    }
    place = &memory->place[number];
    place->dirty |= dirty;
    place->newer = NONE;
    place->older = memory->newest;
    *(memory->newest == NONE ? &memory->oldest : &memory->place[memory->newest].newer) = number;
    memory->newest = number;
    return known;
}

/* When memory has what a read asks for, or has taken what a write brings: 0 for at once. */
static int64_t remember(struct disk *disk, int kind, int64_t file, int64_t bytes, int64_t offset,
                        int64_t now)
{
    int64_t block, last = (offset + bytes - 1) / BLOCK;
    int known = 1;

    for (block = offset / BLOCK; block <= last; block++)
        known &= use_block(disk, file, block, kind == WRITE, now);
    return known || kind == WRITE ? 0 : disk_serve(disk, kind, bytes, now);
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

/* Of an open file that the disk makes slow its path below the directory, else NULL. */
static const char *concerned(int file, int64_t offset)
{
    static __thread char path[4096];
    char link[40];
    ssize_t length;
    size_t above = strlen(directory);

    if (disk->offset >= 0 && offset != disk->offset)
        return NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    length = readlink(link, path, sizeof path - 1);
    if (length < (ssize_t) above)
        return NULL;
    path[length] = 0;
    if (strncmp(path, directory, above) || strncmp(path + above, disk->only, strlen(disk->only)))
        return NULL;
    return path + above;
}

/*
 * Whether memory, if there is one, may lack what a file has: of relations below base/ whose number
 * isn't a catalog's. All else that is read or written lies in there.
 */
static int outgrows(const char *path)
{
    const char *name = strrchr(path, '/');

    return name && !strncmp(path, "base/", 5) && atoi(name + 1) >= 16384;
}

/* Whether this process is one of those whose requests come in pieces, by its title. */
static int gathers(void)
{
    static pid_t process;
    static int is_one;
    char title[4096];
    ssize_t length, turn;
    int file;

    if (process != getpid()) { /* a child isn't what its parent is */
        process = getpid();
        file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
        length = file < 0 ? 0 : syscall(SYS_read, file, title, sizeof title - 1);
        if (file >= 0)
            close(file);
        title[length > 0 ? length : 0] = 0;
        for (turn = 0; turn < length; turn++)
            if (!title[turn])
                title[turn] = ' ';
        is_one = strstr(title, disk->gathering) != NULL;
    }
    return is_one;
}

/* Whether a read or write comes along with another one of this process. */
static int comes_along(int kind)
{
    static int64_t requests[KINDS];

    return disk->ahead > 1 && kind != FLUSH && gathers() && requests[kind]++ % disk->ahead;
}

/* Book a request; when it will be done, or 0 for at once. `offset` -1 is where the file stands. */
static int64_t arrive(int kind, int file, int64_t bytes, int64_t offset)
{
    int before = errno;
    int64_t done = 0;
    const char *path;
    struct stat status;

    if (!disk || !disk->serving)
        return 0;
    if (offset < 0)
        offset = kind == FLUSH ? 0 : lseek(file, 0, SEEK_CUR);
    if (offset < 0)
        offset = 0;
    path = concerned(file, offset);
    if (path && kind == FLUSH && strncmp(path, disk->flushed, strlen(disk->flushed)))
        path = NULL;
    if (path && !comes_along(kind)) {
        if (disk->blocks && kind != FLUSH && (bytes <= 0 || fstat(file, &status)))
            bytes = 0;
        if (pthread_mutex_lock(&disk->lock.mutex) == EOWNERDEAD)
            pthread_mutex_consistent(&disk->lock.mutex);
        if (!disk->blocks || kind == FLUSH)
            done = disk_serve(disk, kind, bytes, now());
        else if (bytes && outgrows(path))
            done = remember(disk, kind, status.st_ino, bytes, offset, now());
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
