#!/usr/bin/env python3
"""The status page: whole without scripts, nothing from elsewhere, and names are never more than text. In a real browser where
there is one (Chromium, which scripts/setup installs)."""

import html.parser
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import unittest
import zlib

from serve.serving import ServeTest, insert
from support.program import main

HOSTILE = '<img src=x onerror="document.title=1">\'&amp;"</td><script>1</script>\u202e'
BROWSER = shutil.which("chromium")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--enable-logging=stderr",
         "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]


class Page(html.parser.HTMLParser):
    """Tags, their attributes and the text of a page, as a browser would take them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.texts.append(data)

    def having(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


class Forwarder:
    """Loopback to the page's Unix socket, for a browser."""

    def __init__(self, path):
        self.path, self.asked = path, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.origin = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(near,), daemon=True).start()

    def serve(self, near):
        with near, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as far:
            try:
                far.connect(self.path)
            except OSError:
                return
            back = threading.Thread(target=self.copy, args=(far, near), daemon=True)
            back.start()
            self.copy(near, far)
            back.join()

    def copy(self, source, sink):
        try:
            while data := source.recv(65536):
                self.asked += re.findall(rb"^GET (\S+) HTTP", data, re.M)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def pixels(png):
    """The distinct pixels of an image without an alpha channel or with one, 8 bits deep."""
    at, data, width, depth = 8, b"", 0, 0
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            width, _, bits, colour = struct.unpack(">IIBB", png[at + 8:at + 18])
            depth = {2: 3, 6: 4}[colour]
            assert bits == 8
        elif kind == b"IDAT":
            data += png[at + 8:at + 8 + length]
        at += 12 + length
    rows, stride, before, seen = zlib.decompress(data), width * depth, bytes(width * depth), set()
    for start in range(0, len(rows), stride + 1):
        kind, line = rows[start], bytearray(rows[start + 1:start + 1 + stride])
        for i in range(stride if kind else 0):
            left, up = line[i - depth] if i >= depth else 0, before[i]
            corner = before[i - depth] if i >= depth else 0
            if kind == 4:
                paeth = left + up - corner
                near = min((abs(paeth - left), 0, left), (abs(paeth - up), 1, up), (abs(paeth - corner), 2, corner))[2]
            line[i] = (line[i] + {1: left, 2: up, 3: (left + up) // 2, 4: near if kind == 4 else 0}[kind]) & 255
        seen.update(bytes(line[i:i + depth]) for i in range(0, stride, depth * 7))
        before = bytes(line)
    return seen


class PageTest(ServeTest):
    def setUp(self):
        super().setUp()
        self.graphs("G", "H")

    def get(self, path, head=False):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(300)
            connection.connect(self.http_path)
            connection.sendall(("%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % ("HEAD" if head else "GET", path)).encode())
            answer = b""
            while more := connection.recv(65536):
                answer += more
        head, _, body = answer.decode().partition("\r\n\r\n")
        return int(head.split()[1]), head, body

    def start_serving(self, names=True, failpoint=""):
        self.configure({"path": "G", "name": HOSTILE.replace("/", "|")}, "H", http=self.http_path, http_names=names)
        self.serve(env={"SLUICE_FAILPOINT": failpoint})

    def change(self, key, branch="main", message=HOSTILE):
        result = self.say(self.mutate_on(key, branch, message))
        self.assertEqual(result.code, 0, result.err)

    def mutate_on(self, key, branch, message):
        name = "m%d.jsonl" % len(os.listdir(self.folder))
        self.write(name, insert(key))
        return self.start("mutate", "G", name, "--branch", branch, "-m", message)

    def make_history(self):
        self.change(1)
        self.assertEqual(self.say(self.start("branch", "create", "G", HOSTILE.replace("/", "|"))).code, 0)
        self.change(2, HOSTILE.replace("/", "|"))
        self.change(3)
        self.assertEqual(self.say(self.start("merge", "G", HOSTILE.replace("/", "|"), "--into", "main")).code, 0)

    def test_a_policy_goes_with_every_answer(self):
        self.start_serving()
        for path in ("/", "/graph/1", "/graph/9", "/metrics", "/healthz", "/style.css", "/refresh.js", "/icon.svg", "/none"):
            code, head, body = self.get(path)
            self.assertEqual(code, 404 if path in ("/graph/9", "/none") else 200, path)
            self.assertIn("Content-Security-Policy: default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
                          "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", head)
            self.assertIn("X-Content-Type-Options: nosniff", head)
            self.assertEqual(self.get(path, head=True)[2], "")
            if path in ("/", "/graph/1"):
                page = Page(body)
                links = [a.get("href") or a.get("src") for tag, a in page.tags if tag in ("a", "link", "script", "img")]
                self.assertTrue(all(link.startswith("/") and not link.startswith("//") for link in links), links)
                self.assertFalse([a for _, a in page.tags if "style" in a or any(name.startswith("on") for name in a)])
        self.end()

    def test_names_are_text_wherever_they_stand(self):
        self.start_serving()
        self.make_history()
        shown = HOSTILE.replace("/", "|")
        for path, names in (("/", [shown]), ("/graph/1", [shown, HOSTILE]), ("/graph/1?branch=%3Cimg%20src%3Dx%3E", ["<img src=x>"])):
            page = Page(self.get(path)[2])
            self.assertEqual((page.having("img"), len(page.having("script"))), ([], 1), path)
            for name in names:
                self.assertIn(name, page.texts, path)
        self.end()

    def test_without_leave_nothing_is_named(self):
        self.start_serving(names=False)
        self.make_history()
        for path in ("/", "/graph/1", "/graph/1?branch=x", "/graph/1?branch=" + "y" * 300):
            code, _, body = self.get(path)
            self.assertEqual(code, 200)
            self.assertEqual([word for word in ("<img", "onerror", ">cli<", self.folder, "|script") if word in body], [], path)
        self.end()

    def test_the_commit_graph_has_every_commit_and_line(self):
        self.start_serving()
        self.make_history()
        commits = self.say(self.start("log", "G", "--json", "--all")).lines
        page = Page(self.get("/graph/1")[2])
        self.assertEqual(len(page.having("circle")), len(commits))
        self.assertEqual({a["title"] for a in page.having("span") if "title" in a} & {c["commit"] for c in commits}, {c["commit"] for c in commits})
        lines = [a for a in page.having("path") if a.get("class", "").startswith("k")]
        self.assertEqual(len(lines), sum(len(c["parents"]) for c in commits))
        columns = {a["cx"] for a in page.having("circle")}
        self.assertEqual(len(columns), 2)
        self.assertEqual(len([a for a in page.having("circle") if "merge" in a["class"]]), 1)
        self.end()

    def test_what_is_at_work_is_shown_with_its_stage_and_gates(self):
        self.start_serving(failpoint="gates.after=stop@1")
        client = self.mutate_on(1, "main", "x")
        runner = self.stopped()
        body = self.get("/")[2]
        self.assertRegex(body, r'<td class="state busy">busy</td><td>mutate</td><td>gates</td>')
        self.assertRegex(body, r'<td>table</td><td class="n">\d+</td><td class="n">\d+</td><td class="state busy">(shared|exclusive)</td>')
        view = [p for p in self.status(detail=True)["processes"] if p["pid"] == runner][0]
        self.assertEqual((view["state"], view["command"], view["stage"], view["graph"]), ("busy", "mutate", "gates", 1))
        self.assertIn("table", [gate["gate"] for gate in self.status(detail=True)["gates"]])
        os.kill(runner, signal.SIGCONT)
        self.assertEqual(self.say(client).code, 0)
        self.assertIn("No gate is held.", self.get("/")[2])
        self.end()

    def test_commits_that_cannot_be_read_in_time_hold_nobody_up(self):
        self.start_serving(failpoint="read.before_pin=stop@1")
        code, _, body = self.get("/graph/2")
        self.assertEqual(code, 200)
        self.assertIn("They are being read.", body)
        self.assertEqual(self.get("/healthz")[0], 200)
        os.kill(self.stopped(), signal.SIGCONT)
        self.until("they are read", lambda: "<circle" in self.get("/graph/2")[2])
        self.end()

    def test_on_loopback_only_loopback_is_answered(self):
        port = random.randrange(20000, 30000)
        self.configure("G", http="127.0.0.1:%d" % port)
        self.serve()
        for host, code in (("127.0.0.1:%d" % port, 200), ("localhost", 200), ("[::1]:1", 200), ("evil.example", 403), ("127.0.0.1.evil.example", 403)):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(("GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % host).encode())
                self.assertEqual(int(connection.recv(65536).split()[1]), code, host)
        self.end()

    def test_health_tells_of_graphs_that_could_not_be_hosted(self):
        self.configure("G", "nowhere", http=self.http_path)
        self.serve()
        self.assertEqual(self.get("/healthz")[::2], (200, "degraded: 1 of 2 graphs are not hosted\n"))
        self.end()


@unittest.skipUnless(BROWSER, "chromium is not installed: the page is not looked at in a browser")
class Browser(PageTest):
    def setUp(self):
        super().setUp()
        self.start_serving()
        self.make_history()
        self.forwarder = Forwarder(self.http_path)
        self.addCleanup(self.forwarder.listener.close)
        self.origin = self.forwarder.origin

    def browse(self, path, *flags, scripts=True):
        """What the browser says of the page; everything that it asked for on the page's behalf came from the page's own place."""
        profile = tempfile.mkdtemp(prefix="sluice-browser-", dir="/tmp")
        self.addCleanup(shutil.rmtree, profile, ignore_errors=True)
        log = os.path.join(profile, "net.json")
        os.makedirs(os.path.join(profile, "data", "Default"))
        with open(os.path.join(profile, "data", "Default", "Preferences"), "w", encoding="utf-8") as file:
            json.dump({"profile": {"default_content_setting_values": {"javascript": 1 if scripts else 2}}}, file)
        self.forwarder.asked.clear()
        result = subprocess.run([BROWSER, *FLAGS, "--user-data-dir=" + os.path.join(profile, "data"), "--log-net-log=" + log, *flags,
                                 self.origin + path], capture_output=True, timeout=300, check=False)
        errors = result.stderr.decode(errors="replace")
        self.assertEqual(result.returncode, 0, errors)
        self.assertNotIn("CONSOLE", errors)
        with open(log, encoding="utf-8") as file:
            mine = [line for line in file if '"initiator":"%s"' % self.origin in line]
        urls = [url for line in mine for url in re.findall(r'"url":"([^"]*)"', line)]
        self.assertEqual([url for url in urls if not url.startswith(self.origin + "/")], [])
        asked = set(self.forwarder.asked)
        self.assertLessEqual({path.encode(), b"/style.css"}, asked)
        self.assertEqual(b"/refresh.js" in asked, scripts)
        return result.stdout.decode()

    def test_the_page_is_whole_with_scripts_and_without_and_to_be_seen(self):
        name, words = HOSTILE.replace("/", "|"), {"Workers", "Gates", "supervisor", "mutate"}
        page = Page(self.browse("/", "--dump-dom", "--virtual-time-budget=5000"))  # the script has put in a newer one
        self.assertIn(name, page.texts)
        self.assertLessEqual(words | {"Graphs"}, set(page.texts))
        self.assertEqual((page.having("img"), len(page.having("main"))), ([], 1))
        self.assertGreaterEqual(len(page.having("polyline")), 7)
        page = Page(self.browse("/graph/1", "--dump-dom", scripts=False))
        self.assertLessEqual(words | {name, HOSTILE}, set(page.texts))
        self.assertEqual((page.having("img"), len(page.having("circle"))), ([], 5))
        image = os.path.join(self.sockets, "shot.png")
        self.browse("/graph/1", "--window-size=900,700", "--screenshot=" + image)
        with open(image, "rb") as file:
            self.assertGreater(len(pixels(file.read())), 30)


for name in [n for n in dir(PageTest) if n.startswith("test_")]:
    setattr(Browser, name, None)  # they need no browser

if __name__ == "__main__":
    main()
