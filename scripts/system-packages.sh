#!/usr/bin/env bash
# What some tests need beyond Python: a browser, its driver, PostgreSQL, R and a token in software, from Debian's packages.
set -euo pipefail
missing=()
command -v chromium > /dev/null || missing+=(chromium)
command -v chromedriver > /dev/null || missing+=(chromium-driver)
compgen -G '/usr/lib/postgresql/*/bin/initdb' > /dev/null || missing+=(postgresql)
command -v Rscript > /dev/null || missing+=(r-base-core)
command -v softhsm2-util > /dev/null || missing+=(softhsm2)
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get > /dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    (apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}") > /dev/null 2>&1 && exit 0
    echo "could not install ${missing[*]}: the tests that need them are skipped" >&2
else
    echo "not installed: ${missing[*]}; the tests that need them are skipped. As root: apt-get install ${missing[*]}" >&2
fi
