#!/usr/bin/env bash
# What some tests need beyond Python: a browser, its driver, PostgreSQL, R and a token in software, from Debian's packages;
# and files as Stata, SPSS and SAS write them. Where something cannot be had, the tests that need it are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
export DEBIAN_FRONTEND=noninteractive

install_programs() {
    local missing=()
    command -v chromium > /dev/null || missing+=(chromium)
    command -v chromedriver > /dev/null || missing+=(chromium-driver)
    compgen -G '/usr/lib/postgresql/*/bin/initdb' > /dev/null || missing+=(postgresql)
    command -v Rscript > /dev/null || missing+=(r-base-core)
    command -v softhsm2-util > /dev/null || missing+=(softhsm2)
    [ ${#missing[@]} -eq 0 ] && return
    if [ "$(id -u)" -eq 0 ] && command -v apt-get > /dev/null; then
        (apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}") > /dev/null 2>&1 ||
            echo "could not install ${missing[*]}: the tests that need them are skipped" >&2
    else
        echo "not installed: ${missing[*]}; the tests that need them are skipped. As root: apt-get install ${missing[*]}" >&2
    fi
}

# The R package haven has examples; no free program writes .sas7bdat. Its files are taken out; it is not installed.
fetch_examples() {
    local folder=.cache/haven
    [ -e "$folder" ] && return
    mkdir -p .cache
    local new
    new=$(mktemp -d .cache/haven.XXXXXX)
    if (cd "$new" && { download || { apt-get update -qq && download; }; } && dpkg -x ./*.deb . && rm ./*.deb) > /dev/null 2>&1; then
        mv "$new" "$folder"
    else
        rm -rf "$new"
        echo "could not download r-cran-haven: the tests that read files of SAS are skipped" >&2
    fi
}

download() {
    apt-get download -qq r-cran-haven
}

install_programs
fetch_examples
