"""The web page: who gets it, what it may do, and how a browser shows it."""

import http.client
import json
import re
import socket
import time

import browser
import pytest
from test_access import BASE, DIGEST
from tools import tool

import service_tools


def fetch(service, method: str, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(*service.address("tcp", "http"), timeout=30)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    answer.text = answer.read().decode()
    connection.close()
    return answer


@pytest.fixture
def page(tmp_path):
    """A browser that shows no page yet."""
    tried = browser.Browser(tool(service_tools.chromium), tmp_path / "profile")
    try:
        yield tried
        # The browser reports a request that is refused on purpose as a resource that failed to load.
        unexpected = [said for said in tried.complaints if "status of 4" not in said]
        assert [] == unexpected
    finally:
        tried.close()


def send(service, *records: dict) -> None:
    body = "\n".join(map(json.dumps, records)).encode()
    assert 200 == service.post("/ingest", body, "application/x-ndjson")[0]


def test_the_page_and_its_parts_are_served_with_a_security_policy(service):
    found = fetch(service, "GET", "/")
    assert (200, "text/html; charset=utf-8") == (found.status, found.getheader("content-type"))
    parts = re.findall(r'(?:src|href)="(/page/[^"]+)"', found.text)
    assert len(parts) >= 3
    for path in parts:
        part = fetch(service, "GET", path)
        assert 200 == part.status, path
        assert "default-src 'none'" in part.getheader("content-security-policy")
        assert "nosniff" == part.getheader("x-content-type-options")
    policy = found.getheader("content-security-policy")
    assert "script-src 'self';" in policy and "unsafe" not in policy
    head = fetch(service, "HEAD", "/")
    assert (200, "", str(len(found.text.encode()))) == (head.status, head.text, head.getheader("content-length"))


def test_the_page_needs_no_token_but_all_its_requests_do(start_service):
    service = start_service(config=BASE + f'[access]\ntoken_sha256 = ["{DIGEST}"]\n')

    assert 200 == fetch(service, "GET", "/").status
    assert 401 == fetch(service, "GET", "/page/none.js").status
    assert 401 == fetch(service, "GET", "/?msg=x&levelno=20").status
    assert 401 == fetch(service, "POST", "/").status
    assert 403 == fetch(service, "GET", "/", Host="evil.example").status
    assert 403 == fetch(service, "GET", "/", Origin="http://evil.example").status


def test_a_handler_may_still_send_to_the_path_of_the_page(service):
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert 200 == service.request("POST", "/", b"name=a&msg=posted&levelno=20", form)[0]
    assert 200 == service.get("/?name=a&msg=got&levelno=20")[0]
    assert {"posted", "got"} == {row["message"] for row in service.wait_for(2)}


def test_a_level_filters_records_and_the_histogram_separates_levels(service):
    moment = "2026-11-22T10:00:00Z"
    send(service, *({"message": "x", "level": level, "time": moment} for level in (0, 10, 25, 30, 39, 40, 60)))

    def asked(path):
        return json.loads(service.get(path)[1])

    assert 4 == len(service.get("/api/query?level=warning")[1].splitlines())
    assert 2 == len(service.get("/api/query?level=40&q=x+or+y")[1].splitlines())
    rows = [(row["level"], row["count"]) for row in asked("/api/histogram?by=level")]
    assert [(10, 2), (20, 1), (30, 2), (40, 1), (50, 1)] == rows
    assert [(30, 2), (40, 1)] == [
        (row["level"], row["count"]) for row in asked("/api/histogram?by=level&level=warning&q=level%3C50")
    ]
    assert [{"time": moment, "count": 7}] == asked("/api/histogram")
    for wrong in ("query?level=loud", "tail?level=loud", "histogram?by=logger", "query?by=level", "query?interval=1m"):
        assert 400 == service.get(f"/api/{wrong}")[0], wrong


def test_an_empty_service_explains_how_to_send_and_shows_arriving_records(service, page):
    page.go(service.url)
    page.wait("document.querySelector('#empty')?.checkVisibility()")
    assert f"{service.url}/ingest" in page.texts("#curl")[0]
    send(service, {"message": "the first one", "level": "warning"})
    page.wait("document.querySelectorAll('.record').length === 1")
    assert ["the first one"] == page.texts(".message")
    assert not page.evaluate("document.querySelector('#empty').checkVisibility()")


def test_records_are_shown_escaped_and_expand_to_all_their_parts(service, page):
    evil = "<script>document.title='run'</script><img src=x onerror=alert(1)>\x1b[31m \u202egpj.exe"
    send(
        service,
        {
            "message": evil,
            "level": "error",
            "logger": "<b>shop</b>",
            "exception": "Traceback\n  \x1b[1mline\nValueError: <i>no</i>",
            "order": 7,
            "big": 12345678901234567890,
            "<u>key</u>": {"a": "\x07"},
        },
    )
    page.go(service.url)
    page.wait("document.querySelectorAll('.record').length === 1")
    assert [evil.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")] == page.texts(".message div")
    assert ["<b>shop</b>"] == page.texts(".logger")
    assert ["ValueError: <i>no</i>"] == page.texts(".more")
    page.press("ArrowDown")
    page.evaluate("document.querySelector('#query').focus()")
    page.press("ArrowDown")
    page.press("Enter", "\r")
    page.wait("document.querySelector('.details')")
    opened = page.texts(".details")[0]
    for part in ("\\x1b[1mline", "ValueError: <i>no</i>", "order", "12345678901234567890", "<u>key</u>", '"\\u0007"'):
        assert part in opened, (part, opened)
    assert 0 == page.evaluate(
        "document.querySelectorAll('main b:not(#total b), main i, main u, main img, main script').length"
    )
    assert "logspool" == page.evaluate("document.title")


def test_a_wrong_query_shows_where_it_is_wrong(service, page):
    send(service, {"message": "paid", "level": "info"}, {"message": "refused", "level": "error"})
    page.go(service.url)
    page.wait("document.querySelectorAll('.record').length === 2")
    page.fill("#query", "paid or (")
    page.click("button.main")
    page.wait("!document.querySelector('#error').hidden")
    assert [
        "cannot read the query: expected a word, a phrase or a comparison",
        "  paid or (",
        "           ^",
    ] == page.texts("#error")[0].splitlines()
    page.fill("#query", "paid or refused")
    page.evaluate("document.querySelector('#level').value = 'error'")
    page.click("button.main")
    page.wait("document.querySelectorAll('.record').length === 1 && document.querySelector('#error').hidden")
    assert ["refused"] == page.texts(".message")
    page.wait("document.querySelector('#total').innerText === '1 record'")
    page.fill("#query", "| count by level")
    page.evaluate("document.querySelector('#level').value = ''")
    page.click("button.main")
    page.wait("document.querySelector('#counts').checkVisibility()")
    assert ["INFO\t1", "ERROR\t1"] == page.texts("#values tr")


def test_older_records_load_page_by_page_each_once(service, page):
    # Many of one moment, as senders with whole seconds have them: the pages end in the midst of them.
    begin = int(time.time()) - 100
    send(service, *({"message": f"m{number}", "time": begin + number // 70} for number in range(250)))
    page.go(service.url)
    for shown in (100, 200, 250):
        page.wait(f"document.querySelectorAll('.record').length === {shown}")
        if shown < 250:
            page.wait("document.querySelector('#older:enabled')?.checkVisibility()")
            page.click("#older")
    assert [f"m{number}" for number in reversed(range(250))] == page.texts(".message")
    page.wait("document.querySelector('#older').hidden")
    page.wait("document.querySelector('#total').innerText === '250 records'")


def test_the_page_shows_all_rows_of_a_count_or_says_how_many_are_missing(service, page):
    begin = int(time.time()) - 1_200 * 60
    send(service, *({"message": "m", "time": begin + number * 60, "n": f"n{number}"} for number in range(1_133)))
    page.go(f"{service.url}/#range=all")
    page.wait("document.querySelector('#state')?.innerText.startsWith('100 of 1,133 shown')")
    for query, state, rows in [
        ("| histogram 1m", "1,133 rows: the newest 1,000 are shown", 1_000),
        ("| count by n", "1,133 rows: the most frequent 1,000 are shown", 1_000),
        ("n>=n50 n<n6 | count by n", "110 rows", 110),
    ]:
        page.fill("#query", query)
        page.click("button.main")
        page.wait(f"document.querySelector('#state').innerText === {json.dumps(state)}")
        assert rows == page.evaluate("document.querySelectorAll('#values tr').length")


def test_an_error_or_an_empty_answer_keeps_the_last_result(service, page):
    send(service, {"message": "paid", "service": "checkout"}, {"message": "refused"})
    page.go(service.url)
    page.wait("document.querySelectorAll('.record').length === 2")
    for query, sentence, place in [
        ("paid or (", "cannot read the query", "#error"),
        ("nothing", "No matching records. The last result is shown below.", "#state"),
        ("service=chekout", 'did you mean service="checkout"?', "#remarks"),
        ("level:error", "write level=error", "#error"),
    ]:
        page.fill("#query", query)
        page.click("button.main")
        page.wait(f"document.querySelector({json.dumps(place)}).innerText.includes({json.dumps(sentence)})")
        assert ["refused", "paid"] == page.texts(".message")
        assert page.evaluate("document.querySelector('#result').matches('.is-old')")
    page.fill("#query", "paid")
    page.click("button.main")
    page.wait("document.querySelectorAll('.record').length === 1 && document.querySelector('#error').hidden")
    assert not page.evaluate("document.querySelector('#result').matches('.is-old')")


def test_the_page_asks_again_when_its_service_was_away(start_service, page, tmp_path):
    service = start_service()
    port = service.address("tcp", "http")[1]
    send(service, {"message": "before"})
    page.go(service.url)
    page.wait("document.querySelectorAll('.record').length === 1")
    service.stop()
    page.click("button.main")
    page.wait("document.querySelector('#error').innerText.startsWith('The service cannot be reached.')")
    assert ["before"] == page.texts(".message")
    listen = f'listen = ["tcp://127.0.0.1:0"]\nhttp = "127.0.0.1:{port}"\n'
    again = start_service(config=listen, folder=tmp_path / "service")
    send(again, {"message": "after"})
    page.wait("document.querySelectorAll('.record').length === 2 && document.querySelector('#error').hidden")
    # The browser reports the requests that failed.
    page.complaints.clear()


def test_live_records_appear_by_themselves_and_wait_while_paused(service, page):
    send(service, {"message": "before"})
    page.go(service.url)
    page.wait("document.querySelectorAll('.record').length === 1")
    page.click("#live")
    page.wait("document.body.classList.contains('is-live')")
    while json.loads(service.get("/api/stats")[1])["tails"] == 0:
        assert service.process.poll() is None
    send(service, {"message": "one"}, {"message": "two"})
    page.wait("document.querySelectorAll('.record').length === 3")
    assert ["two", "one", "before"] == page.texts(".message")
    page.click("#pause")
    send(service, {"message": "three"})
    page.wait("document.querySelector('#pause').innerText === 'Resume (1 new)'")
    assert ["two", "one", "before"] == page.texts(".message")
    page.click("#pause")
    page.wait("document.querySelectorAll('.record').length === 4")
    # More than a page holds at once: the newest are shown, and it says how many are not.
    page.click("#pause")
    for block in range(7):
        send(service, *({"message": f"flood {block}"} for _ in range(100)))
    page.wait("document.querySelector('#pause').innerText === 'Resume (700 new)'")
    page.click("#pause")
    page.wait("document.querySelectorAll('.record').length === 504")
    assert ["200 records arrived faster than this page can show them. Search to see them."] == page.texts(".note")


# Puts a gate before the page's requests: a request whose path is in `shut` waits until the path is removed. `cut()`
# breaks the live connection, and `tails` counts the live connections that were made.
GATES = """
window.shut = new Set();
window.tails = 0;
const real = window.fetch;
window.fetch = async (url, options) => {
  const path = String(url).split("?")[0];
  while (shut.has(path)) await new Promise((resolve) => setTimeout(resolve, 5));
  if (path !== "/api/tail") return real(url, options);
  const cutter = new AbortController();
  window.cut = () => cutter.abort(new Error("cut"));
  const answer = await real(url, { ...options, signal: AbortSignal.any([options.signal, cutter.signal]) });
  tails += 1;
  return answer;
};
"""


def go_live_with_gates(service, page, *shut: str) -> None:
    page.go(service.url)
    page.wait("document.querySelectorAll('.record').length === 1")
    page.evaluate(GATES + "".join(f"shut.add('{path}');" for path in shut))
    page.click("#live")
    page.wait("tails === 1")


def test_records_that_the_first_search_lists_too_are_not_counted_as_new(service, page):
    send(service, {"message": "before"})
    go_live_with_gates(service, page, "/api/query", "/api/histogram")
    send(service, {"message": "one"}, {"message": "two"})
    service.wait_for(3)
    # The search lists them, and is not yet done while the bars are missing.
    page.evaluate("shut.delete('/api/query')")
    page.wait("document.querySelectorAll('.record').length === 3")
    page.click("#pause")
    send(service, {"message": "three"})
    page.wait("/new/.test(document.querySelector('#pause').innerText)")
    assert ["Resume (1 new)"] == page.texts("#pause")
    page.evaluate("shut.clear()")
    page.click("#pause")
    page.wait("document.querySelectorAll('.record').length === 4")
    assert ["three", "two", "one", "before"] == page.texts(".message")


def test_a_reconnection_while_paused_neither_moves_the_table_nor_counts_twice(service, page):
    send(service, {"message": "before"})
    go_live_with_gates(service, page)
    # A search that is still running when the page is paused would list later records.
    page.wait("document.querySelector('#state').innerText.startsWith('1 shown')")
    page.click("#pause")
    send(service, {"message": "one"})
    page.wait("document.querySelector('#pause').innerText === 'Resume (1 new)'")
    page.evaluate("shut.add('/api/tail'); cut()")
    page.wait("!document.querySelector('#trouble').hidden")
    send(service, {"message": "while away"})
    service.wait_for(3)
    page.evaluate("shut.clear()")
    page.wait("tails === 2 && document.querySelector('#trouble').hidden")
    send(service, {"message": "two"})
    page.wait("document.querySelector('#pause').innerText === 'Resume (2 new)'")
    assert ["before"] == page.texts(".message")
    page.click("#pause")
    page.wait("document.querySelectorAll('.record').length === 4")
    page.wait("document.querySelector('#total').innerText === '4 records'")
    assert ["two", "while away", "one", "before"] == page.texts(".message")


def test_a_query_of_a_busy_service_is_retried_until_there_is_room(start_service, page):
    service = start_service(config=BASE + "[limits]\nqueries = 1\n")
    # More than a connection takes while it is not read.
    send(service, *({"message": "x" * 60_000} for _ in range(200)))
    with socket.create_connection(service.address("tcp", "http")) as unread:
        unread.sendall(b"GET /api/query?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert unread.recv(1)
        page.go(service.url)
        page.wait("document.querySelector('#busy')?.innerText.includes('limits.queries')")
    page.wait("document.querySelectorAll('.record').length === 100")
    page.wait("document.querySelector('#busy').hidden")


def test_a_token_is_asked_for_once_and_kept_for_the_tab(start_service, page):
    service = start_service(config=BASE + f'[access]\ntoken_sha256 = ["{DIGEST}"]\n')
    body = b'{"message": "secret enough"}'
    assert 200 == service.post("/ingest", body, "application/json", Authorization="Bearer secret")[0]
    page.go(service.url)
    for token in ("wrong", "secret"):
        page.wait("document.querySelector('#asking')?.open")
        page.fill("#token", token)
        page.click("#token-form button")
        page.wait("!document.querySelector('#asking').open || document.querySelector('#asking-why').innerText")
    page.wait("document.querySelectorAll('.record').length === 1")
    page.order("Page.reload")
    page.wait("document.querySelectorAll('.record').length === 1")
    assert not page.evaluate("document.querySelector('#asking').open")
    assert "secret" == page.evaluate("sessionStorage.getItem('logspool-token')")


def test_the_page_fits_a_narrow_screen(service, page):
    send(service, {"message": "a" * 500, "logger": "b" * 100, "level": "critical", "trace_id": "c" * 64})
    page.look(360, 740)
    page.go(service.url)
    page.wait("document.querySelectorAll('.record').length === 1")
    page.click("button.time")
    page.click("#help summary")
    page.wait("document.querySelector('.details') && document.querySelector('#fields').innerText")
    assert 360 == page.evaluate("document.documentElement.scrollWidth")
