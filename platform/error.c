/*
 * The closed tables behind include/sluice/error.h: names, exit statuses, actions and phases. No state.
 */
#include <sluice/error.h>

const char *sluice_status_name(sluice_status status)
{
    switch (status) {
    case SLUICE_OK:
        return "OK";
#define SLUICE_CODE_NAME(code, exit, retryable, action)                                                                \
    case SLUICE_##code:                                                                                                \
        return #code;
        SLUICE_CODES(SLUICE_CODE_NAME)
#undef SLUICE_CODE_NAME
    }
    return "INTERNAL";
}

int sluice_status_exit(sluice_status status)
{
    switch (status) {
    case SLUICE_OK:
        return 0;
#define SLUICE_CODE_EXIT(code, exit, retryable, action)                                                                \
    case SLUICE_##code:                                                                                                \
        return exit;
        SLUICE_CODES(SLUICE_CODE_EXIT)
#undef SLUICE_CODE_EXIT
    }
    return 1;
}

bool sluice_status_retryable(sluice_status status)
{
    switch (status) {
    case SLUICE_OK:
        return false;
#define SLUICE_CODE_RETRYABLE(code, exit, retryable, action)                                                           \
    case SLUICE_##code:                                                                                                \
        return retryable;
        SLUICE_CODES(SLUICE_CODE_RETRYABLE)
#undef SLUICE_CODE_RETRYABLE
    }
    return false;
}

sluice_action sluice_status_action(sluice_status status)
{
    switch (status) {
    case SLUICE_OK:
        return SLUICE_ACTION_NONE;
#define SLUICE_CODE_ACTION(code, exit, retryable, action)                                                              \
    case SLUICE_##code:                                                                                                \
        return SLUICE_ACTION_##action;
        SLUICE_CODES(SLUICE_CODE_ACTION)
#undef SLUICE_CODE_ACTION
    }
    return SLUICE_ACTION_NONE;
}

const char *sluice_action_name(sluice_action action)
{
    switch (action) {
    case SLUICE_ACTION_NONE:
        return "none";
    case SLUICE_ACTION_RETRY:
        return "retry";
    case SLUICE_ACTION_REFRESH:
        return "refresh";
    case SLUICE_ACTION_RECOVER:
        return "recover";
    case SLUICE_ACTION_FIX:
        return "fix";
    }
    return "none";
}

const char *sluice_phase_name(sluice_phase phase)
{
    switch (phase) {
    case SLUICE_PHASE_NONE:
        return "none";
    case SLUICE_PHASE_OPEN:
        return "open";
    case SLUICE_PHASE_BARRIER:
        return "barrier";
    case SLUICE_PHASE_PREPARE:
        return "prepare";
    case SLUICE_PHASE_GATES:
        return "gates";
    case SLUICE_PHASE_REVALIDATE:
        return "revalidate";
    case SLUICE_PHASE_ARM:
        return "arm";
    case SLUICE_PHASE_EFFECTS:
        return "effects";
    case SLUICE_PHASE_PUBLISH:
        return "publish";
    case SLUICE_PHASE_FINALIZE:
        return "finalize";
    case SLUICE_PHASE_READ:
        return "read";
    case SLUICE_PHASE_RECOVER:
        return "recover";
    }
    return "none";
}
