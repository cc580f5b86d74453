# adlock.mk: adaptive locks for Makefile recipes.
#
#	include /usr/local/lib/adlock/adlock.mk
#
#	publish: site
#		$(ADLOCK) copy site 15 90 -- rsync -a site/ host:/srv/site/
#
# $(ADLOCK) OPERATOR OPERAND [IFELAPSED [EXPIREAFTER [HOST [NOW]]]] -- COMMAND [ARG...]
#
# takes the lock, runs COMMAND, releases; see adlock.sh, which is looked for
# beside this file. Too soon counts as done: the recipe goes on, COMMAND is not
# run; so only a COMMAND that succeeded counts, unless ADLOCK_RETRY_FAILED is 0.
# A busy or full atom is waited for, $(ADLOCK_WAIT) at most; one that a make above
# this one holds is not, where that wait would have no end (75). Only COMMAND holds
# the lock: what follows a ; or && in the recipe does not.
#
# It is no $(call ...): that cuts at commas. All settings of adlock.sh can be
# set in the environment, these in the Makefile too. An atom belongs to a
# program; here that is the Makefile of the directory make runs in, so that two
# projects do not share their atoms.
#
# Directories may have any name: what is passed to the shell is quoted, and what
# it needs is passed as arguments, so that COMMAND's environment is the recipe's.
#
# For GNU make, and for BSD make, which calls some variables by other names;
# each of the two leaves the other's empty. BSD make expands a $ in the value of
# .CURDIR, and so it asks pwd; and in .PARSEDIR: there this file cannot lie in a
# directory with a $ in its name.

_adlock_space := $() $()
_adlock_mk := $(MAKEFILE_LIST)$(.PARSEDIR)$(.PARSEFILE:%=/%)

# A newline would end the recipe's line. GNU make knows one only as what is left
# of the white space between words once // stands for each space; no absolute
# path has // or /./ in it.
_adlock_here = $(subst //, ,$(subst $(_adlock_space),/./,$(strip $(subst $(_adlock_space),//,$(CURDIR)))))

ADLOCK_PROGRAM ?= $(_adlock_here)$(:!pwd!)/Makefile
ADLOCK_WAIT ?= never
ADLOCK_RETRY_FAILED ?= 1

# $$0 is this file, or GNU make's list of the files it has read with this one
# last: where its name has spaces, the shortest end of the list that is a file.
ADLOCK = sh -c ' \
	unset ADLOCK_PROGRAM ADLOCK_WAIT ADLOCK_RETRY_FAILED; \
	ADLOCK_PROGRAM=$$1 ADLOCK_WAIT=$$2 ADLOCK_RETRY_FAILED=$$3; \
	shift 3; \
	rest=$$0 mk=$${0\#\#* }; \
	until [ -f "$$mk" ] || [ "$$mk" = "$$0" ]; do \
		rest=$${rest% *}; mk="$${rest\#\#* } $$mk"; \
	done; \
	case $$mk in */*) ;; *) mk=./$$mk ;; esac; \
	. "$${mk%/*}/adlock.sh" || exit 69; \
	adlock_with "$$@" || { s=$$?; [ "$$ADLOCK_VERDICT" = too-soon ] || exit "$$s"; }' \
	'$(subst ','\'',$(_adlock_mk))'$(_adlock_mk:Q) \
	'$(subst ','\'',$(ADLOCK_PROGRAM))'$(ADLOCK_PROGRAM:Q) \
	'$(subst ','\'',$(ADLOCK_WAIT))'$(ADLOCK_WAIT:Q) \
	'$(subst ','\'',$(ADLOCK_RETRY_FAILED))'$(ADLOCK_RETRY_FAILED:Q)
