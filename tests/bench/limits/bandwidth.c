/*
 * What memory, the disk and its flushes give, bare: bandwidth FOLDER MEBIBYTES. Prints JSON lines as the peers do.
 */
#include <stdbool.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CHUNK       (1u << 20)
#define FLUSHES_MAX 1000u
#define RECORD      4096u

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void demand(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    exit(1);
}

static void print(const char *measure, const char *unit, double value)
{
    printf("{\"measure\": \"%s\", \"unit\": \"%s\", \"value\": %.17g}\n", measure, unit, value);
}

/* The sum of doubles in many independent lanes, so that the additions do not wait for each other. */
static double sum(const double *values, size_t count)
{
    double lanes[16] = {0}, all = 0;
    for (size_t i = 0; i + 16 <= count; i += 16)
        for (size_t lane = 0; lane < 16; lane++)
            lanes[lane] += values[i + lane];
    for (size_t lane = 0; lane < 16; lane++)
        all += lanes[lane];
    return all;
}

static double best_of(double a, double b)
{
    return a > b ? a : b;
}

static void measure_memory(size_t bytes)
{
    char *from = malloc(bytes), *to = malloc(bytes);
    double read = 0, copy = 0;
    volatile double kept;
    demand(from && to, "memory");
    memset(from, 2, bytes); /* not 0: the compiler would take memory that is one page of zeros, and never read any */
    memset(to, 1, bytes);
    for (unsigned i = 0; i < 3; i++) {
        double start = now();
        kept = sum((const double *)(const void *)from, bytes / sizeof(double));
        read = best_of(read, (double)bytes / (now() - start) / 1e9);
        start = now();
        memcpy(to, from, bytes);
        copy = best_of(copy, (double)bytes / (now() - start) / 1e9);
    }
    (void)kept;
    print("read", "GB/s", read);
    print("copy", "GB/s", copy);
    free(from);
    free(to);
}

static void measure_disk(size_t bytes)
{
    static char chunk[CHUNK];
    memset(chunk, 'x', sizeof chunk);
    int file = open("bandwidth.bytes", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    demand(file >= 0, "bandwidth.bytes");
    for (unsigned round = 0; round < 2; round++) {
        double start = now();
        for (size_t at = 0; at < bytes; at += CHUNK)
            demand(pwrite(file, chunk, CHUNK, (off_t)at) == (ssize_t)CHUNK, "write");
        demand(fsync(file) == 0, "fsync");
        print(round == 0 ? "write + fsync" : "overwrite + fsync", "GB/s", (double)bytes / (now() - start) / 1e9);
    }
    double start = now();
    for (size_t at = 0; at < bytes; at += CHUNK)
        demand(pread(file, chunk, CHUNK, (off_t)at) == (ssize_t)CHUNK, "read");
    print("read, cached", "GB/s", (double)bytes / (now() - start) / 1e9);
    demand(fsync(file) == 0 && posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0, "dropping the cache");
    start = now();
    for (size_t at = 0; at < bytes; at += CHUNK)
        demand(pread(file, chunk, CHUNK, (off_t)at) == (ssize_t)CHUNK, "read");
    print("read, not cached", "GB/s", (double)bytes / (now() - start) / 1e9);
    start = now();
    unsigned flushes = bytes / RECORD < FLUSHES_MAX ? (unsigned)(bytes / RECORD) : FLUSHES_MAX;
    for (unsigned i = 0; i < flushes; i++)
        demand(pwrite(file, chunk, RECORD, (off_t)i * RECORD) == (ssize_t)RECORD && fdatasync(file) == 0, "flush");
    print("flushes", "/s", flushes / (now() - start));
    (void)close(file);
    (void)unlink("bandwidth.bytes");
}

int main(int argc, char **argv)
{
    size_t bytes = argc == 3 ? strtoul(argv[2], NULL, 10) << 20 : 0;
    if (bytes == 0 || chdir(argv[1]) != 0) {
        (void)fputs("usage: bandwidth FOLDER MEBIBYTES\n", stderr);
        return 2;
    }
    measure_memory(bytes);
    measure_disk(bytes);
    return 0;
}
