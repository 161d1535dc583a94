#include "worker/ingest/format.h"

const wk_format_ops *wk_format_find(wk_format format)
{
    switch (format) {
    case WK_FORMAT_CSV:
        return &wk_csv_ops;
    case WK_FORMAT_ARROW:
        return &wk_arrow_ops;
    case WK_FORMAT_JSONL:
        break;
    }
    return NULL;
}
