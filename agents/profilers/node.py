"""The CPU profiler of Node.js itself, the one of `node --cpu-prof`, begun and ended for the window.

The flag would profile the start and the warm-up too, and write only when the process ends by itself.
"""

from __future__ import annotations

from agents.base.process_start import ProcessStart
from agents.base.runtime import Runtime
from agents.profilers.base.profiler import Profiler

FILE = "node-profiler.cjs"
OPTIONS = "NODE_OPTIONS"

# Loaded before the program into each process and thread of it. What it makes says which of them are there.
_SCRIPT = """'use strict'
const fs = require('node:fs')
const path = require('node:path')
const { Session } = require('node:inspector')
const { threadId } = require('node:worker_threads')

const me = `${process.pid}-${threadId}`
const at = name => path.join(__dirname, name)
let session = null

function begin () {
  session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.setSamplingInterval', { interval: 1000 })
  session.post('Profiler.start', () => fs.writeFileSync(at(`node-begun.${me}`), ''))
}

function end (out) {
  const ended = session
  session = null
  ended.post('Profiler.stop', (error, result) => {
    const draft = at(`node-draft.${me}`)
    fs.writeFileSync(draft, error ? '' : JSON.stringify(result.profile), { mode: 0o600 })
    fs.renameSync(draft, `${out}.${me}.part`)
    ended.disconnect()
  })
}

function look () {
  try {
    if (!session && fs.existsSync(at('node-go'))) begin()
    else if (session && fs.existsSync(at('node-end'))) end(fs.readFileSync(at('node-end'), 'utf8').trim())
  } catch { /* the program goes on as without it */ }
}
fs.watch(__dirname, { persistent: false }, look)
"""

_BEGIN = """
engine=v8
: >"$folder/node-go"
tries=100
while set -- "$folder"/node-begun.* && [ ! -e "$1" ]; do
  tries=$((tries - 1))
  [ "$tries" -gt 0 ] || { echo "no process of the server began to profile itself" >&2; exit 4; }
  sleep 0.1
done
"""

_END = """
rm -f "$folder/node-go"
echo "$out" >"$folder/node-end.part-0" && mv "$folder/node-end.part-0" "$folder/node-end"
tries=300
for begun in "$folder"/node-begun.*; do
  while [ ! -e "$out.${begun##*node-begun.}.part" ]; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || break
    sleep 0.1
  done
done
"""


class Node(Profiler):
    """Weights are nanoseconds of each thread that runs JavaScript, idle time left out; a sample each millisecond."""

    kind = "node"
    title = "the profiler of Node.js"
    of = "Node.js"
    cost = "1,000 samples a second in each process"
    clock = "uptime"

    def fits(self, runtime: Runtime) -> bool:
        return runtime == "node"

    def prepared(self, launch: ProcessStart, folder: str, event: str) -> ProcessStart:
        given = launch.environment.get(OPTIONS, "")
        return launch.with_(environment={**launch.environment, OPTIONS: f'{given} --require "{folder}/{FILE}"'.strip()})

    def files(self) -> dict[str, str]:
        return {FILE: _SCRIPT}

    def begin(self, event: str) -> str:
        return _BEGIN

    def end(self, event: str) -> str:
        return _END
