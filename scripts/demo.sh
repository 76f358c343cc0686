#!/usr/bin/env bash
# The youth-voter release on the stand-in of its data. Run twice: the second run finds the release and pays nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
steps=.venv/bin/steps
release=examples/youth-voter

. scripts/demo-inputs.sh

$steps plan "$release/release.yaml"
$steps run "$release/release.yaml"
$steps budget show us-youth-2000-2012
$steps releases
