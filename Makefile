# Thin: makes .venv, then calls pgrerun or pytest.
#   make book                 run what is out of date, build the site, say where it is
#   make book PROFILE=laptop  the same with another profile (ci, laptop, overnight)
#   make book RUN=mine        build the site from a recorded run instead, without measuring (data/runs/mine)
#   make site                 the same from the published run
#   make print                a PDF and an ePub of what the site shows, or with RUN=mine of a run
#   make picture              the README's picture of the scoreboard, from the published run
#   make quick                format, lint, types, and the tests that aren't marked slow: about a minute
#   make test                 all that, integration and site tests, then every chapter under nbval
#   make long                 what make test leaves out: the whole book printed, and both below
#   make releases             every chapter on each old release that is here (make test runs one on one)
#   make kills                two minutes of kill -9 at random, and what they leave on the machine
#   make serve                the built site on http://127.0.0.1:8000
#   make bench                what is measured side by side with a bare tool
#   make clean                remove what can be built again
PYTHON3 ?= python3
PORT ?= 8000
PROFILE ?=
RUN ?=

# Modules are compiled when they are first used (see install); kept from writing that down,
# each kernel and each test that starts a process would compile them again, for six seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: book site print picture quick test long releases kills serve bench clean venv install
.DEFAULT_GOAL := book

book: venv
	@.venv/bin/python -m pgrerun $(if $(RUN),site --run $(RUN),book $(if $(PROFILE),--profile $(PROFILE)))

site: venv
	@.venv/bin/python -m pgrerun site

print: venv
	@.venv/bin/python -m pgrerun print $(if $(RUN),--run $(RUN))

picture: venv
	@.venv/bin/python -m pgrerun picture

quick: venv
	.venv/bin/ruff format --check --quiet .
	.venv/bin/ruff check --quiet .
	.venv/bin/mypy --no-error-summary
	.venv/bin/python -m pytest -q -n 2 -m "not slow" --ignore tests/long tests

# What runs where:
# - here every test but the long ones. The book is built twice for them, of a toy and of the real
#   chapters, and looked at once: each real page for its charts, complaints and width wide and on a
#   phone, one page of each form for its accessibility and in the dark as well. The toy is printed.
# - each chapter runs under nbval and nowhere else (but see tests/site/checkouts.py and
#   tests/test_old_releases.py). Only what was counted or observed is compared there, so that two
#   chapters run at once; no time that they take is judged by anybody. Their records are kept from
#   the reader's own, and what the account has registered or fetched is hidden from them, so that
#   all compare the same facts. The book that was built here is neither needed nor touched.
# - `make long`, each month in .github/workflows/rerun.yml: the real chapters as an ePub and a PDF,
#   the accessibility of every page, all chapters on all old releases and on somebody's server, and
#   processes killed at random.
test: venv
	.venv/bin/ruff format --check --quiet .
	.venv/bin/ruff check --quiet .
	.venv/bin/mypy --no-error-summary
	.venv/bin/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --durations 25 -m "not long" --ignore tests/long tests
	XDG_CACHE_HOME="$(CURDIR)/_build/cache" PGRERUN_INGRES= PGRERUN_RUNS="$(CURDIR)/_build/runs" .venv/bin/python -m pytest --nbval -n 2 --dist loadfile notebooks

long: venv releases kills
	.venv/bin/python -m pytest -m long tests/site

# Half an hour for four releases; which there are, `pgrerun releases` says.
releases: venv
	PGRERUN_ALL_RELEASES=1 .venv/bin/python -m pytest -n 2 tests/test_old_releases.py

kills: venv
	.venv/bin/python -m pytest tests/long

serve: book
	@echo "http://127.0.0.1:$(PORT)  (Ctrl-C ends it)"
	@.venv/bin/python -m http.server --directory _build/html --bind 127.0.0.1 $(PORT)

bench: venv
	@for benchmark in benchmarks/*.py; do echo "$$benchmark"; .venv/bin/python $$benchmark || exit 1; done

clean: venv
	@.venv/bin/python -m pgrerun clean

# What was installed is written down last, so a half-finished install is taken up again.
# The folder belongs to it: scripts in a moved .venv point to the old place.
# Compiling every module of every package would take as long as the download; Python
# compiles those that are used.
installed = { echo "$(CURDIR)"; cat requirements.txt pyproject.toml; }

venv:
	@$(installed) | cmp -s - .venv/installed || $(MAKE) --no-print-directory install

install:
	@$(PYTHON3) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "This needs Python 3.11 or later as $(PYTHON3). With another one: make book PYTHON3=/path/to/python3.12"; exit 1; }
	@$(PYTHON3) -c 'import venv, ensurepip' || \
	    { echo "$(PYTHON3) can't make virtual environments. On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@rm -f .venv/installed
	@[ "$$(cat .venv/place 2>/dev/null)" = "$(CURDIR)" ] || $(PYTHON3) -m venv --clear .venv
	@echo "$(CURDIR)" > .venv/place
	@echo "Installing requirements.txt into .venv (about a minute)"
	@.venv/bin/python -m pip install --quiet --no-compile --disable-pip-version-check -r requirements.txt
	@$(installed) > .venv/installed
