"""DuckDB: COPY into tables, the nodes' with a primary key; ends of edges are not checked (with foreign keys a load takes some ten
times as long). Both processors, but for the scan that says otherwise."""

import duckdb
import python_peer


class DuckDB(python_peer.Peer):
    def load(self, nodes, edges, database):
        c = duckdb.connect(database)
        c.execute("CREATE TABLE nodes(id BIGINT PRIMARY KEY, name VARCHAR, age INTEGER, score DOUBLE, created TIMESTAMP)")
        c.execute("CREATE TABLE edges(src BIGINT, dst BIGINT, weight DOUBLE, since BIGINT)")
        c.execute("COPY nodes FROM '%s' (HEADER)" % nodes)
        c.execute("COPY edges FROM '%s' (HEADER)" % edges)
        c.execute("CHECKPOINT")

    def writer(self, database):
        c = duckdb.connect(database)
        c.execute("CREATE TABLE nodes(id BIGINT PRIMARY KEY, name VARCHAR)")
        return lambda number: c.execute("INSERT INTO nodes VALUES (?, ?)", (number, python_peer.NAME))

    def reader(self, database):
        c = duckdb.connect(database, read_only=True)

        def scan(threads):
            c.execute("SET threads=%d" % threads)
            return c.execute("SELECT sum(weight) FROM edges").fetchone()[0], None

        def one(text):
            return lambda: tuple(int(value) for value in c.execute(text).fetchone())

        def reads(ids):
            few = ids[:python_peer.DEEP]
            per = 1e6 / len(ids)
            return {"scan, 1 thread": ("ms", 1e3, lambda: scan(1)),
                    "scan": ("ms", 1e3, lambda: scan(2)),
                    "1-hop": ("us", per, one("SELECT count(*), sum(dst) FROM edges WHERE src IN (SELECT unnest(%s))" % ids)),
                    "2-hop": ("us", 1e6 / len(few), one("SELECT count(*), sum(b.dst) FROM edges a JOIN edges b ON b.src = a.dst "
                                                         "WHERE a.src IN (SELECT unnest(%s))" % few))}
        return reads


if __name__ == "__main__":
    python_peer.main(DuckDB)
