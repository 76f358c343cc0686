#!/usr/bin/env bash
# Prefect's server and a worker on loopback, behind a login, everything in prefect.yaml deployed. Ctrl-C stops both.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin
port=${STEPS_UI_PORT:-4200}

STEPS_HOME=$(realpath -m "${STEPS_HOME:-.steps}")
export STEPS_HOME
export PREFECT_HOME=${PREFECT_HOME:-$STEPS_HOME/prefect}
export PREFECT_API_URL=http://127.0.0.1:$port/api
mkdir -p "$PREFECT_HOME"

. scripts/demo-inputs.sh
[ -e "$STEPS_HOME/worker.yaml" ] || (
    umask 022
    printf 'releases: "%s/examples"\nsources: ["%s/%s"]\npopulations: [%s]\n' "$PWD" "$PWD" "$records" "$population" > "$STEPS_HOME/worker.yaml"
)

stop() {
    trap - INT TERM EXIT
    for process in ${worker:-} ${server:-}; do
        kill -TERM "$process" 2> /dev/null && sleep 1 && kill -TERM "$process" 2> /dev/null || true
    done
    wait 2> /dev/null || true
}
trap stop EXIT
trap 'exit 0' INT TERM

$bin/steps server start --port "$port" > "$PREFECT_HOME/server.log" 2>&1 &
server=$!
for _ in $(seq 180); do
    $bin/python -c "import urllib.request as u; u.urlopen('$PREFECT_API_URL/health', timeout=2)" 2> /dev/null && break
    kill -0 "$server" 2> /dev/null || { echo "the server stopped; see $PREFECT_HOME/server.log" >&2; exit 1; }
    sleep 1
done

$bin/steps server install
$bin/steps server work > "$PREFECT_HOME/worker.log" 2>&1 &
worker=$!

echo "Login for the UI: $($bin/steps server login)   (kept in $STEPS_HOME/keys/prefect-login)"
echo "Prefect UI: http://127.0.0.1:$port   (home $STEPS_HOME, logs in $PREFECT_HOME; Ctrl-C stops)"
wait "$server"
