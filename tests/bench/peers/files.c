#include "files.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct reader {
    const char *at, *end;
} reader;

/* Mapped, and behind the line of the names. */
static reader open_file(const char *path)
{
    struct stat stat;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &stat) != 0 || stat.st_size == 0)
        peer_fail("%s cannot be read", path);
    const char *bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED)
        peer_fail("%s cannot be mapped", path);
    (void)close(file);
    const char *line = memchr(bytes, '\n', (size_t)stat.st_size);
    return (reader){line ? line + 1 : bytes + stat.st_size, bytes + stat.st_size};
}

static int64_t whole(reader *from)
{
    int64_t value = 0;
    while (from->at < from->end && *from->at >= '0' && *from->at <= '9')
        value = value * 10 + (*from->at++ - '0');
    from->at += from->at < from->end; /* the comma, or the end of the line */
    return value;
}

/* All fractions in these files have six digits. */
static double fraction(reader *from)
{
    int64_t before = whole(from);
    return (double)before + (double)whole(from) / 1e6;
}

/* "2017-03-09 12:00:59" (Howard Hinnant's civil date to days). */
static int64_t timestamp_us(reader *from)
{
    int64_t year = whole(from), month = whole(from), day = whole(from), hour = whole(from), minute = whole(from),
            second = whole(from);
    year -= month <= 2;
    int64_t era = year / 400, of_era = year - era * 400,
            of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000000;
}

static void *room_for(void *items, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return items;
    size_t more = *room ? *room * 2 : 1u << 20;
    void *grown = peer_allocate(more * size);
    if (count)
        memcpy(grown, items, count * size);
    /* the old ones are left: the program ends soon */
    *room = more;
    return grown;
}

void peer_read_files(const char *nodes, const char *edges, peer_graph *ret_graph)
{
    peer_graph graph = {0};
    size_t room = 0;
    for (reader from = open_file(nodes); from.at < from.end; graph.node_count++) {
        graph.nodes = room_for(graph.nodes, graph.node_count, &room, sizeof *graph.nodes);
        peer_node *node = &graph.nodes[graph.node_count];
        node->id = whole(&from);
        node->name = from.at;
        while (from.at < from.end && *from.at != ',')
            from.at++;
        node->name_length = (uint32_t)(from.at - node->name);
        from.at++;
        node->age = (int32_t)whole(&from);
        node->score = fraction(&from);
        node->created_us = timestamp_us(&from);
    }
    room = 0;
    for (reader from = open_file(edges); from.at < from.end; graph.edge_count++) {
        graph.edges = room_for(graph.edges, graph.edge_count, &room, sizeof *graph.edges);
        peer_edge *edge = &graph.edges[graph.edge_count];
        edge->from = whole(&from);
        edge->to = whole(&from);
        edge->weight = fraction(&from);
        edge->since = whole(&from);
    }
    *ret_graph = graph;
}
