# The daily commands; `just` lists them, `just --list` too. Each is one or two lines of cargo, so `just` itself is a convenience:
# install it with `cargo install just`, or copy the line.

set positional-arguments

# what there is
default:
    @just --list --unsorted

# the program, at target/release/limitpoint
build:
    cargo build --release

# run the program: just run digits optimiser=adam
run *arguments:
    cargo run --release -- run "$@"

# the tests of one library module or of all: just quick norms::
quick *filter:
    cargo test --release --lib --bins -- "$@"

# everything that tests: units, laws, layering, the command line, documentation
test:
    cargo test --release --workspace

# the tests with other random cases than those of .cargo/config.toml
explore:
    PROPTEST_RNG_SEED=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ') cargo test --release --workspace

# format the code, then hold it against clippy
lint:
    cargo fmt --all
    cargo clippy --release --workspace --all-targets -- -D warnings

# the documentation of the library, in target/doc/limitpoint/index.html
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --no-deps

# docs/reference.md, written anew by the program
reference:
    cargo run --release --quiet -- schema --markdown > target/reference.md
    mv target/reference.md docs/reference.md

# steps per second of the four workloads; just bench --python PYTHON compares with other engines
bench *arguments:
    cargo run --release -- bench "$@"

# the same steps, timed by criterion
criterion *arguments:
    cargo bench -p limitpoint --bench steps -- "$@"

# claims of the papers: just reproduce B.thm5 --checks
reproduce *arguments:
    cargo run --release -- reproduce "$@"

# the archives that would be published, built from what is in them
package:
    .ci/run package

# licences, sources and double versions of all dependencies
dependencies:
    cargo test --release -p limitpoint-cli --test dependencies

# everything that is checked before a change is accepted, or the steps that are named: just ci fmt clippy
ci *steps:
    .ci/run "$@"
