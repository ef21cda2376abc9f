from tests.frontend.test_result_pages import *
from django.db import connection
from django.test.utils import CaptureQueriesContext
def test_q(browser, admin, make_run, make_experiment):
    make_experiment(2); browser.get("/t/perf/")
    for n in (0,6):
        if n: make_experiment(n)
        with CaptureQueriesContext(connection) as c: browser.get("/t/perf/")
        print("=====", len(c))
        for q in c: print(q["sql"][:60], "...", q["sql"][q["sql"].find(" FROM "):][:110])
