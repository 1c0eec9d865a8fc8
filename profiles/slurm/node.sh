# Run on a node before each of its jobs: what is missing there ends the job with one line in its log.
fail() {
    echo "error: node $(hostname): $1" >&2
    exit 1
}
[ -f Snakefile ] || [ -f workflow/Snakefile ] || fail "$PWD is not the folder that the job was sent from: it must be shared by all nodes"
python -c "import neuroute" 2>/dev/null || fail "no environment: $(command -v python || echo python) cannot import neuroute; install it where all nodes see it"
cache="${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}"  # Snakemake keeps something there
[ -z "$cache" ] || { mkdir -p -m 700 "$cache" && [ -w "$cache" ] && [ -O "$cache" ]; } 2>/dev/null || fail "$cache cannot be written, as where the home folder is not shared, or is another's: export XDG_CACHE_HOME=/tmp/cache-\$USER, and start Snakemake again"
probe=".snakemake/clock.$(hostname).$$"
touch "$probe" 2>/dev/null || fail "$PWD/.snakemake cannot be written from here"
ahead=$(($(date +%s) - $(stat -c %Y "$probe")))
rm -f "$probe"
[ "${ahead#-}" -le 5 ] || fail "its clock and that of the file system differ by ${ahead#-} s, so finished files would look old: set one of them right"
