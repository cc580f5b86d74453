# adlock.mk: adaptive locks for Makefile recipes.
#
#	include /usr/local/lib/adlock/adlock.mk
#
#	publish: site
#		@$(ADLOCK) copy site 15 90 -- rsync -a site/ host:/srv/site/
#
# $(ADLOCK) OPERATOR OPERAND [IFELAPSED [EXPIREAFTER [HOST [NOW]]]] -- COMMAND [ARG...]
#
# takes the lock, runs COMMAND, releases; see adlock.sh, which must be beside this file.
# IFELAPSED is 0 by default: make decides what to make. With one, too soon counts as done:
# the recipe goes on, COMMAND is not run; so only a COMMAND that succeeded counts, unless
# ADLOCK_RETRY_FAILED is 0. But if GNU make is at a pattern rule and the target does not
# exist, the recipe fails (75). Of other rules it is unknown whether they make a file: give
# no IFELAPSED in those that do.
# COMMAND waits for a busy or full atom, $(ADLOCK_WAIT) at most; not for one that a make
# above this one holds, if that wait would have no end (75). Only COMMAND holds the lock:
# commands after a ; or && in the recipe do not.
#
# It is no $(call ...): that cuts at commas. All settings of adlock.sh can be set in the
# environment; those of one lock (ADLOCK_WAIT, ADLOCK_SLOTS, ADLOCK_FROM_START and the like)
# in the Makefile too, for all of it or for a target:
#
#	index: ADLOCK_IF_ELAPSED = 15
#
# (BSD make has variables of a target from 2022 on.) To pass a variable on to COMMAND,
# ADLOCK_DIR for example, export it.
#
# An atom belongs to a program; here that is the Makefile of the directory make runs
# in, so that two projects do not share their atoms.
#
# Directories may have any name: what is passed to the shell is quoted, and what it needs is
# passed as arguments. COMMAND inherits where locks are, and no settings of its own lock, as
# under `adlock run`.
#
# For GNU make, and for BSD make, which has other names for some variables; each leaves the
# other's empty. BSD make expands a $ in the value of .CURDIR, so pwd is used; and in
# .PARSEDIR: for it this file cannot be in a directory with a $ in its name.

_adlock_space := $() $()
_adlock_mk := $(MAKEFILE_LIST)$(.PARSEDIR)$(.PARSEFILE:%=/%)

# A newline would end the recipe's line. GNU make knows one only as what is left
# of the white space between words once // stands for each space; no absolute
# path has // or /./ in it.
_adlock_here = $(subst //, ,$(subst $(_adlock_space),/./,$(strip $(subst $(_adlock_space),//,$(CURDIR)))))

ADLOCK_PROGRAM ?= $(_adlock_here)$(:!pwd!)/Makefile
ADLOCK_WAIT ?= forever
ADLOCK_RETRY_FAILED ?= 1

# Other settings of one lock. make reads them from the environment too.
_adlock_own = IF_ELAPSED EXPIRE_AFTER PAUSE WAIT_ELAPSED SLOTS SHARED FROM_START STARVING NOTICE

# The file that a pattern rule of GNU make makes; empty in other rules.
_adlock_made = $(if $*,$(if $(filter /%,$@),,$(_adlock_here)/)$@)

# $$0 is this file, or GNU make's list of the files it has read with this one
# last: where its name has spaces, the shortest end of the list that is a file.
ADLOCK = sh -c ' \
	for own in PROGRAM OPERATOR OPERAND NAME IF_ELAPSED EXPIRE_AFTER PAUSE WAIT WAIT_ELAPSED \
		SLOTS SHARED FROM_START STARVING NOTICE NOW RETRY_FAILED EXIT_DENIED REPLACE ENFORCE \
		WHOLE_JOB QUIET_OK JITTER DRY_RUN ONCE_PER ON_TROUBLE; do \
		eval "said=\$${ADLOCK_$$own-}; unset ADLOCK_$$own; ADLOCK_$$own=\$$said"; \
	done; \
	ADLOCK_PROGRAM=$$1 ADLOCK_WAIT=$$2 ADLOCK_RETRY_FAILED=$$3 made=$$4; \
	shift 4; \
	for own in $(_adlock_own); do eval "ADLOCK_$$own=\$$1"; shift; done; \
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
	}' \
	'$(subst ','\'',$(_adlock_mk))'$(_adlock_mk:Q) \
	'$(subst ','\'',$(ADLOCK_PROGRAM))'$(ADLOCK_PROGRAM:Q) \
	'$(subst ','\'',$(ADLOCK_WAIT))'$(ADLOCK_WAIT:Q) \
	'$(subst ','\'',$(ADLOCK_RETRY_FAILED))'$(ADLOCK_RETRY_FAILED:Q) \
	'$(subst ','\'',$(_adlock_made))' \
	$(foreach own,$(_adlock_own),'$(subst ','\'',$(ADLOCK_$(own)))')$(_adlock_own:@own@''$(ADLOCK_$(own):Q)@)
