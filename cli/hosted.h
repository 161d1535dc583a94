/*
 * Commands by way of a supervisor: the client's side, which hands a command over when a supervisor hosts its graph, and
 * the runner's side, which runs it there. Both parse the same words by the same table, so what is printed, and the exit
 * status, are the command's own either way.
 */
#ifndef CLI_HOSTED_H
#define CLI_HOSTED_H

#include "cli/command.h"
#include "coord/host/call.h"
#include "coord/host/serve.h"
#include "store/format/json.h"

/* The supervisor that may be asked: SLUICE_SOCKET, else the hint in the graph's folder (*ret_hinted). Malloc'd; NULL:
 * none. */
char *cli_find_socket(const char *graph, bool *ret_hinted);
/* Connects for a command about a supervisor itself: at `socket`, else at the one of `graph` (NULL: SLUICE_SOCKET). */
sluice_status cli_connect(const cli_run *run, const char *socket, const char *graph, co_call **ret_call,
                          sluice_error *err);
/* A member of its answer as text: "" when it is absent, or neither a string nor a number. */
const char *cli_node_text(const st_node *object, const char *name);
/* Any part of its answer, as JSON. (Its depth is bounded by the parser.) */
void cli_put_node(st_json *json, const st_node *node);
/* A table of these members of each object of a list (NULL: empty); to the right from column `right` on. */
sluice_status cli_print_nodes(cli_run *run, const st_node *list, const char *const *columns, uint32_t count,
                              uint32_t right, sluice_error *err);
/* Runs the command by way of a supervisor when one hosts its graph: then run->served is set, and its output is printed.
 */
sluice_status cli_serve_elsewhere(cli_run *run, char *const *words, uint32_t count, sluice_error *err);
/* The commands that a supervisor takes, and how a runner runs them. */
extern const co_host_program cli_host_program;

#endif
