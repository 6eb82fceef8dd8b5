# The vocabulary of this repository. Each target prints what it does; the scripts are in dev/.

CACHE := $(or $(WINDLASS_CACHE),$(HOME)/.cache/windlass)
export WINDLASS_CACHE := $(CACHE)
export CARGO_TERM_COLOR ?= auto

.DEFAULT_GOAL := help
.PHONY: help demo test guests alone check bench dist images bugs mutants races sim fuzz setup

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-7s %s\n", $$1, $$2 }' Makefile

demo: setup ## watch real guests grow and shrink on this machine; writes report.html
	dev/static windlass-informant windlass-lab-load >/dev/null
	dev/quietly "Building windlass and the demo" cargo build --locked -p windlass -p windlass-demo
	dev/in-target debug/windlass-demo $(DEMO)

test: setup ## run every test; hosts with guests under load last, one at a time
	dev/need cpio:cpio bsdutils:script postgresql
	dev/static windlass-informant windlass-lab-load windlass-lab-limit
	dev/static --profile dev windlass-plugin-program windlass-agent-program
	dev/control-plane
	dev/test

guests: setup ## play the stories of real guests in each version of the informant's protocol; GUESTS="v1.1" for one
	dev/static windlass-informant windlass-lab-load
	dev/guests $(GUESTS)

alone: setup ## leave two VMs of a cluster alone, and print what is asked of the API server each minute; ALONE=20 for twenty minutes
	dev/static windlass-informant windlass-lab-load
	dev/control-plane
	WINDLASS_ALONE=$(or $(ALONE),10) cargo test --locked --workspace --test left_alone -- --nocapture

check: ## formatting, lints, dependencies, documentation, shell scripts
	dev/check

bench: setup ## print figures of speed and size; BENCH="--help" says which
	dev/static windlass-informant windlass-lab-load
ifneq (,$(filter scheduler cluster-agent,$(or $(strip $(BENCH)),scheduler)))
	dev/control-plane
endif
	cargo build --locked --release -p windlass -p windlass-bench -p windlass-agent-program -p windlass-plugin-program
	dev/in-target release/windlass-bench $(BENCH)

dist: ## put release programs into dist/
	dev/dist

images: ## put images of windlass-plugin and windlass-agent into dist/, for a cluster
	dev/images

bugs: ## break each law on purpose, in a copy of the tree, and show that its test notices; BUGS="--check" says which patches apply
	dev/bugs $(BUGS)

mutants: ## change the code in small ways and say what no test notices; MUTANTS="--help" says how
	dev/mutants $(MUTANTS)

races: ## race growth against placement in each mode, RACES=1000 times
	dev/control-plane
	WINDLASS_RACES=$(or $(RACES),1000) cargo test --locked -p windlass-plugin-program --test cluster races:: -- --nocapture

sim: ## play schedules of faults in virtual time, from seeds; SIM="--help" says how
	cargo build --locked --profile sim -p windlass-sim
	dev/in-target sim/windlass-sim $(SIM)

fuzz: ## look for inputs that break a listener or reader; FUZZ="--help" says how
	dev/need g++:c++
	dev/fuzz $(FUZZ)

setup: ## install or name what tests and demo need: QEMU, a guest kernel
	dev/setup
