"""Kuzu, and Ladybug, its maintained fork, which is called alike: COPY of nodes, COPY of edges, CHECKPOINT; keys and ends are
checked, per statement."""

import importlib

import python_peer


class Kuzu(python_peer.Peer):
    def connect(self, database, **options):
        engine = importlib.import_module(self.module)
        return engine.Connection(engine.Database(database, **options))

    def load(self, nodes, edges, database):
        c = self.connect(database)
        c.execute("CREATE NODE TABLE N(id INT64 PRIMARY KEY, name STRING, age INT64, score DOUBLE, created TIMESTAMP)")
        c.execute("CREATE REL TABLE E(FROM N TO N, weight DOUBLE, since INT64)")
        c.execute("COPY N FROM '%s' (HEADER=true)" % nodes)
        c.execute("COPY E FROM '%s' (HEADER=true)" % edges)
        c.execute("CHECKPOINT")

    def writer(self, database):
        c = self.connect(database)
        c.execute("CREATE NODE TABLE N(id INT64 PRIMARY KEY, name STRING)")
        insert = c.prepare("CREATE (:N {id: $id, name: $name})")
        return lambda number: c.execute(insert, {"id": number, "name": python_peer.NAME})

    def reader(self, database):
        c = self.connect(database, read_only=True)

        def one(text):
            def ask():
                row = c.execute(text).get_next()
                return row[0], row[1] if len(row) > 1 else None
            return ask

        def point(ids, get):
            return sum(c.execute(get, {"id": number}).get_next()[0] for number in ids), None

        def reads(ids):
            few = ids[:python_peer.DEEP]
            get = c.prepare("MATCH (a:N {id: $id}) RETURN a.age")
            return {"scan": ("ms", 1e3, one("MATCH ()-[k:E]->() RETURN sum(k.weight)")),
                    "point, of 1,000": ("us", 1e6 / len(few), lambda: point(few, get)),
                    "1-hop": ("us", 1e6 / len(ids), one("UNWIND %s AS i MATCH (a:N {id: i})-[:E]->(b) RETURN count(*), sum(b.id)" % ids)),
                    "2-hop": ("us", 1e6 / len(few), one("UNWIND %s AS i MATCH (a:N {id: i})-[:E]->()-[:E]->(b) RETURN count(*), sum(b.id)" % few))}
        return reads


if __name__ == "__main__":
    python_peer.main(Kuzu)
