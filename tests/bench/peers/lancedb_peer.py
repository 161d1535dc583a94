"""LanceDB: a table of each file, read by pyarrow; nothing is checked, and a load is not one transaction. Commits may be written
without a flush: they then survive a killed process, not a power cut."""

import lancedb
import pyarrow
import pyarrow.csv
import python_peer


class LanceDB(python_peer.Peer):
    def load(self, nodes, edges, database):
        db = lancedb.connect(database)
        db.create_table("nodes", pyarrow.csv.read_csv(nodes))
        db.create_table("edges", pyarrow.csv.read_csv(edges))

    def writer(self, database):
        schema = pyarrow.schema([("id", pyarrow.int64()), ("name", pyarrow.string())])
        table = lancedb.connect(database).create_table("nodes", schema=schema)
        return lambda number: table.add(pyarrow.table({"id": [number], "name": [python_peer.NAME]}, schema=schema))

    def optimize(self, database):
        lancedb.connect(database).open_table("nodes").optimize()


if __name__ == "__main__":
    python_peer.main(LanceDB)
