#!/usr/bin/env python3
"""What is wrong with an input is said so that it can be put right: for each fault of the table, the message names the place (FILE:LINE
and column), the text, the rule, and the code with its exit status; and what the hint says, done, makes the load succeed: a flag that
is pasted from it, or an edit of the file."""

import gzip
import re
import shlex

from support.program import ProgramTest, main

SCHEMA = {"nodes": {
    "P": {"key": "id", "properties": {
        "id": "int64", "name": "string", "mail": "string?", "age": "int32?", "big": "uint64?", "score": "float64?", "ratio": "float32?",
        "ok": "bool?", "born": "date?", "seen": "timestamp?", "blob": "bytes?", "grade": "string?", "code": "string?"},
        "unique": [["mail"]],
        "checks": {"age": {"min": 0, "max": 150}, "name": {"min_length": 2, "max_length": 10}, "grade": {"enum": ["low", "high"]},
                   "code": {"pattern": "[A-Z]{2}[0-9]+"}}},
    "Q": {"key": "k", "properties": {"k": "string", "n": "int32?"}}},
    "edges": {"K": {"from": "P", "to": "P", "properties": {"w": "int32?"}, "key": [], "cardinality": {"out": "0..2"}}}}
PEOPLE = "id,name,mail\n1,Ada,a@x\n2,Bob,b@x\n3,Eve,\n"
KNOWS = "from,to\n1,2\n"
SKIP = r"(--on-error skip)"
ADD = r"add: (--.*)"
WHOLE_NUMBER = "whole number"


class Fault:
    """One file that is wrong. `fix` puts it right as the hint says: a pattern whose group is the flags, or a function of the content
    and the hint; `also` are inputs and flags that the hint asks for."""

    def __init__(self, content, line, words, code, hint, fix=None, type="P", name="bad.csv", exit=4, options=(), also=(), fixed_name=None):
        self.content = content.encode("utf-8") if isinstance(content, str) else content
        self.line, self.words, self.code, self.hint, self.type, self.name, self.exit = line, words, code, hint, type, name, exit
        self.options, self.also, self.fixed_name = options, also, fixed_name or name
        self.fix = fix or hint


def edit(old, new):
    """Replaces what is wrong in the file."""
    old, new = (part.encode("utf-8") if isinstance(part, str) else part for part in (old, new))

    def change(content, _hint):
        assert old in content
        return content.replace(old, new)
    return change


def value(column, bad, good, code, words, hint, fix=None):
    """A row whose value of one column is bad, behind one that is good."""
    return Fault("id,name,%s\n10,good,\n11,other,%s\n" % (column, bad), 3, ["column " + column, *words], code, hint, fix or edit(bad, good))


def quoted(content, hint):
    """The words that the hint shows in quotes."""
    return re.findall(r'"([^"]*)"', hint)


def best_name(content, hint):
    return content.replace(b"agee", quoted(content, hint)[0].encode())


def first_allowed(content, hint):
    return content.replace(b"middle", quoted(content, hint)[0].encode())


WHOLE_GZIP = gzip.compress(b"id,name\n10,good\n")

FAULTS = [
    # values
    value("age", "abc", "12", "CONSTRAINT_TYPE", ['"abc"', "int32"], WHOLE_NUMBER),
    value("age", "99999999999", "120", "CONSTRAINT_TYPE", ['"99999999999"', "int32"], "2147483647"),
    value("age", "1.0", "1", "CONSTRAINT_TYPE", ['"1.0"', "int32"], "digits only"),
    value("age", "+5", "5", "CONSTRAINT_TYPE", ['"+5"', "int32"], "digits only"),
    value("age", '" 7"', "7", "CONSTRAINT_TYPE", ['" 7"', "int32"], "digits only"),
    value("big", "-1", "1", "CONSTRAINT_TYPE", ['"-1"', "uint64"], "from 0 to 18446744073709551615"),
    value("score", '"1,5"', "1.5", "CONSTRAINT_TYPE", ['"1,5"', "float64"], "with a point"),
    value("ratio", "1e99", "1e9", "CONSTRAINT_TYPE", ['"1e99"', "float32"], "number"),
    value("ok", "yes", "true", "CONSTRAINT_TYPE", ['"yes"', "bool"], "true or false"),
    value("born", "31.01.2026", "2026-01-31", "CONSTRAINT_TYPE", ['"31.01.2026"', "date"], "2026-01-31"),
    value("born", "2026-02-30", "2026-02-28", "CONSTRAINT_TYPE", ['"2026-02-30"', "date"], "2026-01-31"),
    value("seen", "2026/01/31 07:05 PM", "2026-01-31T19:05:00Z", "CONSTRAINT_TYPE", ['"2026/01/31 07:05 PM"', "timestamp"],
          "2026-01-31T12:34:56"),
    value("blob", "a b", "c2x1aWNlIQ==", "CONSTRAINT_TYPE", ['"a b"', "base64"], "in base64 with its padding"),
    value("age", "NULL", "", "CONSTRAINT_TYPE", ['"NULL"', "int32"], ADD, ADD),
    value("born", "\\N", "", "CONSTRAINT_TYPE", ['"\\N"', "date"], ADD, ADD),
    value("age", "151", "", "CONSTRAINT_CHECK", ['"151"', "above the maximum", "150"], SKIP, SKIP),
    value("age", "-1", "", "CONSTRAINT_CHECK", ['"-1"', "below the minimum", '"0"'], SKIP, SKIP),
    value("grade", "middle", "", "CONSTRAINT_CHECK", ['"middle"', "none of the values allowed"], 'allowed: "low", "high"', first_allowed),
    value("code", "x1", "XY1", "CONSTRAINT_CHECK", ['"x1"', "pattern"], r"must match \[A-Z\]\{2\}\[0-9\]\+"),
    Fault("id,name\n10,good\n11,far too long a name\n", 3, ["column name", "19 characters", "more than 10"], "CONSTRAINT_CHECK", SKIP),
    Fault("id,name\n10,good\n11,x\n", 3, ["column name", "1 characters", "fewer than 2"], "CONSTRAINT_CHECK", SKIP),
    Fault("id,name\n10,good\nx11,other\n", 3, ["column id", '"x11"', "int64"], "CONSTRAINT_TYPE", WHOLE_NUMBER, edit("x11", "11")),
    Fault("id,name\n10,good\n,other\n", 3, ["column id", "may not be null"], "CONSTRAINT_NULL", SKIP),
    Fault("id,name,mail\n10,good,\n11,,\n", 3, ["column name", "may not be null"], "CONSTRAINT_NULL", "give it a value",
          edit("11,,", "11,other,")),
    Fault("k,n\nkey,1\n" + "k" * 1100 + ",2\n", 3, ["column k", "longer than the limit of 1024"], "RESOURCE_LIMIT", SKIP, type="Q", exit=10),
    # lexing and encoding
    Fault("id,name\n10,good\n11,\u00e9t\u00e9\n".encode("latin-1"), 3, ["column name", "UTF-8"], "CONSTRAINT_TYPE", "iconv -f LATIN1 -t UTF-8",
          lambda content, hint: content.decode("latin-1").encode("utf-8")),
    Fault("id,name\n10,good\n11,other\n".encode("utf-16"), 1, ["UTF-16"], "INPUT_SYNTAX", "iconv -f UTF-16 -t UTF-8",
          lambda content, hint: content.decode("utf-16").encode("utf-8")),
    Fault(b"id,name\n10,good\n11,ot\0her\n", 3, ["column name", "NUL"], "INPUT_SYNTAX", r"tr -d '\\000'", edit(b"\0", b"")),
    Fault("id,name\n10,good\n11\n", 3, ["1 value for 2 columns"], "INPUT_SYNTAX", "needs its delimiter", edit("11\n", "11,other\n")),
    Fault("id,name\n10,good\n11,a, b\n", 3, ["3 values for 2 columns"], "INPUT_SYNTAX", "quotes around a value", edit("a, b", '"a, b"')),
    Fault("id,name\n10,good\n11,a, b\n", 3, ["3 values for 2 columns"], "INPUT_SYNTAX", SKIP),
    Fault('id,name\n10,good\n11,"say "yes""\n', 3, ["column name", "text behind the closing quote"], "INPUT_SYNTAX", "written twice",
          edit('"yes"', '""yes""')),
    Fault('id,name\n10,good\n11,"say \\"yes\\"!"\n', 3, ["column name", "text behind the closing quote"], "INPUT_SYNTAX", ADD),
    Fault("id,name\n10,good\r11,other\n", 2, ["3 values for 2 columns"], "INPUT_SYNTAX", r"tr '\\r' '\\n'", edit("\r", "\n")),
    Fault("id,name\r10,good\r", 1, ["header", "carriage return"], "INPUT_SYNTAX", r"tr '\\r' '\\n'", edit("\r", "\n")),
    Fault("k\nnorth\rsouth\n", 2, ["column k", "carriage return"], "INPUT_SYNTAX", r"tr '\\r' '\\n'", edit("\r", "\n"), type="Q"),
    Fault('id,name\n10,good\n11,"other\n12,more\n', 3, ["a quote opens here and is never closed"], "INPUT_SYNTAX", "close the quote",
          edit('"other', '"other"')),
    # headings
    Fault("id,name,agee\n10,good,1\n", 1, ['column "agee"', "type P has no such property"], "INPUT_SYNTAX", 'did you mean "age"', best_name),
    Fault("id,name,agee\n10,good,1\n", 1, ['column "agee"', "type P has no such property"], "INPUT_SYNTAX", r"(--ignore-unknown)"),
    Fault("id,name,zodiac\n10,good,1\n", 1, ['column "zodiac"', "type P has no such property"], "INPUT_SYNTAX", r"(--ignore-unknown)"),
    Fault("id,mail\n10,m@x\n", 1, ['column "name"', "missing"], "INPUT_SYNTAX", "add the column",
          lambda content, hint: b"id,mail,name\n10,m@x,good\n"),
    Fault("id,name,name\n10,good,other\n", 1, ['"name"', "twice"], "INPUT_SYNTAX", "x:IGNORE", edit("name,name", "name,x:IGNORE")),
    Fault("id;name\n10;good\n", 1, ['column "id;name"'], "INPUT_SYNTAX", ADD),
    Fault("id\tname\n10\tgood\n", 1, ["no such property"], "INPUT_SYNTAX", ADD),
    Fault("10,1\n11,2\n", 1, ['column "10"', "type Q has no such property"], "INPUT_SYNTAX", ADD, type="Q"),
    Fault("id,name,\n10,good,x\n", 2, ["column 3 has no name", '"x"'], "INPUT_SYNTAX", "give the column a name", edit("name,\n", "name,mail\n")),
    Fault("", 1, ["empty", "no header"], "INPUT_SYNTAX", "give the file a heading", lambda content, hint: b"id,name\n10,good\n"),
    Fault("frm,to\n1,3\n", 1, ['column "frm"', "type K has no such property"], "INPUT_SYNTAX", 'did you mean "from"', edit("frm", "from"), type="K"),
    Fault("who,whom\n1,3\n", 1, ['column "who"', "type K has no such property"], "INPUT_SYNTAX", "columns from and to", edit("who,whom", "from,to"), type="K"),
    Fault("from\n1\n", 1, ['column "to"', "missing"], "INPUT_SYNTAX", "columns from and to", edit("from\n1", "from,to\n1,3"), type="K"),
    Fault("id,name,:LABEL\n10,good,P\n11,other,R\n", 3, [":LABEL", '"R" is not the type P'], "CONSTRAINT_CHECK", SKIP),
    # keys, unique values, ends, counts
    Fault("id,name\n10,good\n10,other\n", 3, ["column id", '"10"', "already on line 2"], "KEY_CONFLICT", SKIP),
    Fault("id,name\n1,Adele\n10,good\n", 2, ["column id", '"1"', "exists already in type P"], "KEY_CONFLICT", r"(--mode upsert)"),
    Fault("id,name\n1,Adele\n10,good\n", 2, ["column id", '"1"', "exists already in type P"], "KEY_CONFLICT", SKIP),
    Fault("id,name,mail\n10,good,m@x\n11,other,m@x\n", 3, ["column mail", '"m@x"', "line 2"], "CONSTRAINT_UNIQUE", SKIP),
    Fault("id,name,mail\n10,good,m@x\n11,other,a@x\n", 3, ["column mail", '"a@x"', "exists already"], "CONSTRAINT_UNIQUE", SKIP),
    Fault("from,to\n1,3\n2,77\n", 3, ["column to", "no P", '"77"', "edge type K"], "CONSTRAINT_ENDPOINT", SKIP, type="K"),
    Fault("from,to\n1,3\n2,77\n", 3, ["column to", "no P", '"77"', "edge type K"], "CONSTRAINT_ENDPOINT", "load its nodes before or along with it",
          lambda content, hint: content, type="K", also=("P=77.csv",)),
    Fault("from,to\n1,3\n1,3\n", 3, ["columns from, to", "already on line 2"], "KEY_CONFLICT", SKIP, type="K"),
    Fault("from,to\n1,2\n1,3\n", 2, ["columns from, to", "exists already"], "KEY_CONFLICT", r"(--mode upsert)", type="K"),
    Fault("from,to\n1,1\n1,3\n", 3, ["column from", 'P "1"', "at most 2 edges of type K"], "CONSTRAINT_CARDINALITY", SKIP, type="K"),
    # compressed files, names of files
    Fault(WHOLE_GZIP[:-6], None, ["bad.csv.gz"], "INPUT_SYNTAX", "get or make the file again", lambda content, hint: WHOLE_GZIP, name="bad.csv.gz"),
    Fault(WHOLE_GZIP + b"junk", None, ["bad.csv.gz"], "INPUT_SYNTAX", "behind the end", lambda content, hint: WHOLE_GZIP, name="bad.csv.gz"),
    Fault("id,name\n10,good\n", None, ["plain.csv.gz"], "UNSUPPORTED_FORMAT", "must not be called .gz", lambda content, hint: content, name="plain.csv.gz", exit=7,
          fixed_name="plain.csv"),
    Fault("id,name\n10,good\n", None, ["people.dat", "format"], "USAGE", r"(--format csv)", name="people.dat", exit=2),
    # JSON Lines
    Fault('{"id":10,"name":"good"}\n{"id":11,\n"name":"other"}\n', 2, ["not one JSON object"], "INPUT_SYNTAX", "one object on each line",
          edit("11,\n", "11,"), name="bad.jsonl"),
    Fault('{"id":10,"name":"good"}\n{"id":11,"nam":"other"}\n', 2, ['"nam"', "no such property"], "INPUT_SYNTAX", 'did you mean "name"',
          edit('"nam"', '"name"'), name="bad.jsonl"),
    Fault('{"id":10,"name":"good"}\n{"id":11,"name":"other","x":1}\n', 2, ['"x"', "no such property"], "INPUT_SYNTAX", r"(--ignore-unknown)",
          name="bad.jsonl"),
    Fault('{"id":10,"name":"good"}\n{"id":11,"name":7}\n', 2, ["column name", '"7"', "string"], "CONSTRAINT_TYPE", SKIP, name="bad.jsonl"),
    Fault('{"id":10,"name":"good"}\n{"id":11,"name":"other","age":"x"}\n', 2, ["column age", '"x"', "int32"], "CONSTRAINT_TYPE", WHOLE_NUMBER,
          edit('"x"', "7"), name="bad.jsonl"),
    Fault('{"id":10,"name":"good"}\n{"id":11,"id":12,"name":"other"}\n', 2, ["id", "twice"], "INPUT_SYNTAX", SKIP, name="bad.jsonl"),
    Fault('{"id":10,"name":"good"}\n{"name":"other"}\n', 2, ['"id"', "missing"], "CONSTRAINT_NULL", "add the column",
          edit('{"name":"other"', '{"name":"other","id":11'), name="bad.jsonl"),
    Fault('{"id":10,"name":"good"}\n{"id":10,"name":"other"}\n', 2, ["column id", '"10"', "line 1"], "KEY_CONFLICT", SKIP, name="bad.jsonl"),
]


class Messages(ProgramTest):
    def setUp(self):
        super().setUp()
        self.init(SCHEMA)
        self.write("people.csv", PEOPLE)
        self.write("knows.csv", KNOWS)
        self.write("77.csv", "id,name\n77,seven\n")
        self.load("P=people.csv", "K=knows.csv")

    def tell(self, fault):
        """The message and the hint of the fault."""
        self.write(fault.name, fault.content)
        said = self.refused(fault.exit, "load", "G", "%s=%s" % (fault.type, fault.name), "--workers", "1", "--json", *fault.options)
        self.assertEqual(said.error["code"], fault.code)
        self.assertIs(said.error["committed"], False)
        lines = [line for line in said.err.splitlines() if not line.startswith('{"event"')]
        message = next(line for line in lines if line.startswith("sluice: "))
        hints = [line[len("hint: "):] for line in lines if line.startswith("hint: ")]
        if fault.line is not None:
            self.assertTrue(message.startswith("sluice: %s:%d: " % (fault.name, fault.line)), message)
        self.assertTrue(message.endswith("(%s)" % fault.code), message)
        for word in fault.words:
            self.assertIn(word, message)
        self.assertEqual(len(hints), 1, said.err)
        self.assertRegex(hints[0], fault.hint)
        return hints[0]

    def follow(self, fault, hint):
        """Does what the hint says; the load must then go through (in a dry run, so that the next fault meets the same graph)."""
        flags, content = [], fault.content
        if callable(fault.fix):
            content = fault.fix(fault.content, hint)
        else:
            flags = shlex.split(re.search(fault.fix, hint).group(1))
        self.write(fault.fixed_name, content)
        said = self.run_program("load", "G", *fault.also, "%s=%s" % (fault.type, fault.fixed_name), "--workers", "1", "--json", "--dry-run",
                                *fault.options, *flags)
        self.assertEqual(said.code, 0, "%s, followed: %s" % (hint, said.err))
        self.assertGreater(said.document["rows"][fault.type], 0)
        self.assertLessEqual(said.document["rejected"], 1)

    def test_messages_name_what_is_wrong_and_hints_help(self):
        self.assertGreaterEqual(len(FAULTS), 60)
        for number, fault in enumerate(FAULTS):
            with self.subTest(number=number, content=fault.content[:60], words=fault.words):
                self.follow(fault, self.tell(fault))
        self.assertEqual(self.done("count", "G", "--json").document, {"P": 3, "Q": 0, "K": 1})

    def test_mistakes_in_the_command_end_before_any_work(self):
        """R039: a misspelt option is not passed over, nor a type, nor a file that is not there."""
        for words, exit_status, said_too in (
                (("P=people.csv", "--on-eror", "skip"), 2, "did you mean --on-error?"),
                (("P=people.csv", "--on-error", "skp"), 2, "fail|skip"),
                (("P=people.csv", "--on-error", "skip", "--max-errors", "-1"), 2, "--max-errors"),
                (("P=people.csv", "--on-error", "skip", "--rejects"), 2, "--rejects wants a value"),
                (("PP=people.csv",), 2, 'did you mean "P"?'),
                (("P=nowhere.csv",), 2, "nowhere.csv: no such file"),
                (("people.csv",), 2, "Person=people.csv"),
                (("P=knows.csv",), 4, "from and to are columns of edges"),
                (("K=people.csv",), 4, "people.csv:1: ")):
            said = self.refused(exit_status, "load", "G", *words)
            self.assertIn(said_too, said.err)
        self.assertEqual(self.done("count", "G", "--json").document, {"P": 3, "Q": 0, "K": 1})


if __name__ == "__main__":
    main()
