#include "worker/ingest/format.h"

const wk_format_ops *wk_format_find(wk_format format)
{
    static const wk_format_ops *const all[] = {
        [WK_FORMAT_CSV] = &wk_csv_ops, [WK_FORMAT_JSONL] = &wk_jsonl_ops, [WK_FORMAT_ARROW] = &wk_arrow_ops};
    return all[format];
}
