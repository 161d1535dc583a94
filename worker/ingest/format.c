#include "worker/ingest/format.h"

const wk_format_ops *wk_format_find(wk_format format)
{
    return format == WK_FORMAT_CSV ? &wk_csv_ops : NULL;
}
