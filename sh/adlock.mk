# adlock.mk: adaptive locks for Makefile recipes.
#
#	include /usr/local/lib/adlock/adlock.mk
#
#	publish: site
#		@$(ADLOCK) copy site 15 90 -- rsync -a site/ host:/srv/site/
#
# $(ADLOCK) OPERATOR OPERAND [IFELAPSED [EXPIREAFTER [HOST [NOW]]]] -- COMMAND [ARG...]
#
# takes the lock, runs COMMAND and releases the lock; see adlock.sh, which must be beside this
# file.
#
# IFELAPSED is 0 by default, as make decides what to make. With another IFELAPSED, too soon
# counts as done: the recipe goes on, and COMMAND is not run. (So a COMMAND that failed does not
# count for IFELAPSED, unless ADLOCK_RETRY_FAILED is 0.) But in a pattern rule of GNU make whose
# target does not exist, too soon makes the recipe fail (75); so it does for a target with a suffix
# that make knows, as deploy.sh. Other rules do not show whether they make a file: give no IFELAPSED
# in those that do.
#
# $(ADLOCK) waits for a busy or full atom, at most $(ADLOCK_WAIT). If a make above this one holds
# the atom, and the wait would have no end, the recipe fails instead (75). The lock is held only
# while COMMAND runs, not for commands after a ; or && in the recipe.
#
# GNU make runs a recipe with $(MAKE), or with a + before it, also under -n, -q and -t. Then COMMAND
# runs without the lock. It should be a make, which makes nothing under these options.
#
# Do not use $(call ...) for it, which cuts at commas. All settings of adlock.sh can be set in the
# environment. Those of one lock (ADLOCK_WAIT, ADLOCK_SLOTS, ADLOCK_FROM_START and
# others) can also be set in the Makefile, for all of it or for a target:
#
#	index: ADLOCK_IF_ELAPSED = 15
#
# Two users who make in one directory take turns with
#
#	index: ADLOCK_FLOCK = Makefile
#
# because the Makefile is locked with flock(2) too, as flock(1) does, and both can read it.
#
# Before $(ADLOCK) in a recipe, as in ADLOCK_WAIT=2s $(ADLOCK) ..., a setting has no effect.
# (BSD make has variables for a target since 2022.) To pass a variable on to COMMAND,
# ADLOCK_DIR for example, export it.
#
# The program of the atoms is the Makefile of the directory in which make runs, so that two
# projects do not share their atoms. The directory has the name by which make's caller came there:
# after cd current, behind a link that each release moves, all releases are one program. After
# make -C current they are not, as no program knows that name then: set ADLOCK_PROGRAM.
#
# Directories may have any name: the shell gets them as quoted arguments. COMMAND inherits the
# settings for the place of locks, and no settings of its own lock, as under `adlock run`.
#
# This file is for GNU make and BSD make. A variable NAMEgnu here is NAME for GNU make. The other
# make never expands it, so make --warn-undefined-variables has nothing to report.

# BSD make takes this for a variable, and finds it empty.
_adlock_make = $(firstword gnu)

# One is GNU make's, the others are BSD make's, which always has them. BSD make expands a $ in
# .PARSEDIR, so for it this file cannot be in a directory with a $ in its name.
.PARSEDIR ?=
.PARSEFILE ?=
_adlock_mk := $(MAKEFILE_LIST)$(.PARSEDIR)$(.PARSEFILE:%=/%)

# The path of the directory. BSD make would expand a $ in .CURDIR. In GNU make it is the path with
# /./ in place of each newline, which would end the recipe's line. GNU make cannot name a newline:
# it is the white space that is left between words once // stands for each space. No absolute path
# of make's has // or /./ in it.
_adlock_here = $(:!pwd!)
_adlock_heregnu = $(call _adlock_line,$(CURDIR))
_adlock_line = $(subst //, ,$(subst $(_adlock_space),/./,$(strip $(subst $(_adlock_space),//,$1))))
_adlock_empty :=
_adlock_space := $(_adlock_empty) $(_adlock_empty)

ADLOCK_PROGRAM ?= $(_adlock_here$(_adlock_make))/Makefile
ADLOCK_WAIT ?= forever
ADLOCK_RETRY_FAILED ?= 1

# The PWD of GNU make's caller, if nothing else names the program. make itself ignores it, and the
# script below uses it only if it leads to the same directory. (value: make would expand a $ in it.)
# BSD make heeds PWD by itself.
_adlock_caller = $(if $(findstring _adlock_here,$(value ADLOCK_PROGRAM)),$(call _adlock_line,$(value PWD)))

# Other settings of one lock. make reads them from the environment too.
_adlock_own = IF_ELAPSED EXPIRE_AFTER PAUSE WAIT_ELAPSED SLOTS SHARED FROM_START STARVING NOTICE FLOCK

# The file that a pattern rule of GNU make makes; empty in other rules.
_adlock_made = $(if $*,$(if $(filter /%,$@),,$(_adlock_heregnu)/)$@)

# The words of the script below, quoted for the shell.
_adlock_words = ''$(_adlock_mk:Q) ''$(ADLOCK_PROGRAM:Q) ''$(ADLOCK_WAIT:Q) ''$(ADLOCK_RETRY_FAILED:Q) \
	'' '' $(_adlock_own:@_adlock_word@''$(ADLOCK_$(_adlock_word):Q)@)
_adlock_wordsgnu = $(foreach _adlock_word,_adlock_mk ADLOCK_PROGRAM ADLOCK_WAIT ADLOCK_RETRY_FAILED _adlock_made _adlock_caller \
	$(addprefix ADLOCK_,$(_adlock_own)),'$(subst ','\'',$(if $(value $(_adlock_word)),$($(_adlock_word))))')

# $$0 is the path of this file or, in GNU make, the list of the files that make has read, with this
# file last. As the path may contain spaces, it is the shortest end of the list that is a file.
ADLOCK = sh -c ' \
	for own in PROGRAM OPERATOR OPERAND NAME IF_ELAPSED EXPIRE_AFTER PAUSE WAIT WAIT_ELAPSED \
		SLOTS SHARED FROM_START STARVING NOTICE NOW RETRY_FAILED EXIT_DENIED REPLACE ENFORCE \
		WHOLE_JOB QUIET_OK JITTER DRY_RUN ONCE_PER FLOCK; do \
		eval "said=\$${ADLOCK_$$own-}; unset ADLOCK_$$own; ADLOCK_$$own=\$$said"; \
	done; \
	ADLOCK_PROGRAM=$$1 ADLOCK_WAIT=$$2 ADLOCK_RETRY_FAILED=$$3 made=$$4; \
	case $$5 in /*) [ "$$5" -ef "$${1%/*}" ] 2>/dev/null && ADLOCK_PROGRAM=$$5/Makefile ;; esac; \
	shift 5; \
	for own in $(_adlock_own); do eval "ADLOCK_$$own=\$$1"; shift; done; \
	case $${MAKEFLAGS%% *} in -* | *=*) ;; *[nqt]*) for word; do shift; [ "$$word" != -- ] || exec "$$@"; done ;; esac; \
	rest=$$0 mk=$${0\#\#* }; \
	until [ -f "$$mk" ] || [ "$$mk" = "$$0" ]; do \
		rest=$${rest% *}; mk="$${rest\#\#* } $$mk"; \
	done; \
	case $$mk in */*) ;; *) mk=./$$mk ;; esac; \
	. "$${mk%/*}/adlock.sh" || exit 69; \
	adlock_with "$$@" && exit; s=$$?; \
	[ "$$ADLOCK_VERDICT" = too-soon ] || exit "$$s"; \
	[ -z "$$made" ] || [ -e "$$made" ] || { \
		printf "adlock: %s: is not there, and it is too soon to make it\n" "$$made" >&2; exit 75; \
	}' $(_adlock_words$(_adlock_make))
