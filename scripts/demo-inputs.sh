# Sourced by demo.sh and ui.sh: the stand-in data and a grant, made once.
population=us-youth-2000-2012
records=examples/youth-voter/voter.parquet

[ -e "$records" ] || .venv/bin/steps data youth-voter "$records"
.venv/bin/steps budget show "$population" > /dev/null 2>&1 ||
    .venv/bin/steps budget grant "$population" 4 --why "demonstration: four releases of ε = 1"
