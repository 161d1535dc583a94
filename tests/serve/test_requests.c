/*
 * Requests and configurations with bytes changed, lost and repeated: all are refused or answered, and nothing is left
 * behind (the sanitized build sees to that). The same function is the fuzz target.
 */
#include "tests/support/test.h"

#include "tests/fuzz/fuzz_serve.c"

#define ROUNDS 20000u

static const char *const seeds[] = {
    "r{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"submit\",\"params\":{\"graph\":\"g\",\"command\":\"mutate\",\"words\":"
    "[\"g\",\"--json\"],"
    "\"text\":\"{}\",\"operation_id\":\"01890000-0000-4000-8000-000000000001\",\"wait\":true,\"stream\":true}}\n"
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"submit\",\"params\":{\"graph\":\"g\",\"command\":\"load\",\"words\":["
    "\"g\",\"P=f\"],"
    "\"workers\":2,\"start_within_ms\":5,\"wait\":false}}\n{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"list\"}\n",
    "r{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"status\",\"params\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":"
    "\"watch\","
    "\"params\":{\"job\":\"01890000-0000-4000-8000-000000000001\"}}\n{\"jsonrpc\":\"2.0\",\"method\":\"cancel\"}\n",
    "c{\"socket\":\"s\",\"workers\":2,\"http\":\"127.0.0.1:80\",\"graphs\":[{\"path\":\"G\",\"memory\":\"64M\","
    "\"uids\":[1,2],"
    "\"mode\":\"queued\"}]}",
};

static uint64_t random_state = 88172645463325252u;

static uint32_t draw(uint32_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % below;
}

static void any_bytes_are_refused_or_answered(void **state)
{
    uint8_t input[2048];
    (void)state;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const char *seed = seeds[draw(sizeof seeds / sizeof seeds[0])];
        size_t length = strlen(seed);
        memcpy(input, seed, length);
        for (uint32_t change = draw(6); change > 0 && length > 2; change--) {
            uint32_t at = 1 + draw((uint32_t)length - 1);
            switch (draw(4)) {
            case 0:
                input[at] = (uint8_t)draw(256);
                break;
            case 1:
                memmove(input + at, input + at + 1, length - at - 1);
                length--;
                break;
            case 2:
                memmove(input + at + 1, input + at, length - at);
                length++;
                break;
            default:
                length = at + 1;
                break;
            }
        }
        assert_int_equal(LLVMFuzzerTestOneInput(input, length), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_bytes_are_refused_or_answered)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
