# SPDX-License-Identifier: MIT
# Builds the programs with known answers, each in up to four flavours:
#   plain/   no profiler's macros    causal/  -DUSE_CAUSAL    coz/  -DUSE_COZ (if coz.h is there)
#   stripped/  as causal/, as installed: no symbols; names in a file of their own
# Called by `make accuracy`:
#   make -f SRC/programs.mk SRC=.../programs OUT=builddir CAUSAL_INC=dir-of-causal.h
# GNU make. What cannot be built here (no clang, libomp, rustc or coz) is left out, and the
# runner says so for each case.
SRC ?= .
OUT ?= bin
CC = gcc
CLANG ?= $(shell command -v clang)
RUSTC ?= $(shell command -v rustc)
CAUSAL_INC ?= $(SRC)/../../../include
COZ_INC ?= /usr/include
CXX = g++
COMMON = -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wno-unused-function -pthread

C_PROGRAMS = serial barrier prodcons mutex futex spinlock pipeline blocking pipes inline omp \
	rwlock churn latency recursion phase forkpipe yield semaphore condvar nested crowd shares \
	lease openloop pace outside serve dynamic queues hot several stacks kernel

# One source, several programs: NAME-VARIANT is a link to NAME.
PACE = abstime tick late nanosleep usleep busy poll cond condmono timerfd epoll timer itimer \
	bucket bucket_knee
OUTSIDE = $(foreach where,in out,$(foreach via,pipe pair tcp epoll futex,slow_$(via)_$(where) \
	ask_$(via)_$(where)) $(foreach via,pipe tcp futex,fast_$(via)_$(where))) ask_tcp_exec \
	lead_pipe_in lead_tcp_in lead_futex_in paced_pipe_in paced_pipe_out paced_tcp_out paced_futex_out \
	sink_pipe_in sink_pipe_out sink_pair_out fed_pipe_in fed_pipe_out fed_tcp_out fed_epoll_out
MEET := $(shell $(CXX) -std=gnu++20 -include barrier -fsyntax-only -x c++ /dev/null 2>/dev/null && echo meet)
QUEUES = two4 two64 two1024 late4096 slow20 slow200 three4 three64 three1024 burst64 short03 short1 short5
HOT = mutex spin inline barrier pipe omp system deep crowd miss
VARIANTS = $(QUEUES:%=queues-%) $(HOT:%=hot-%) $(PACE:%=pace-%) $(OUTSIDE:%=outside-%) serve-tcp serve-eventfd \
	$(foreach m,$(if $(MEET),barrier semaphore futex spin yield),meet-$(m) meet-$(m)_short) \
	$(if $(MEET),meet-barrier_two meet-futex_two meet-spin_two) several-two several-four \
	stacks-context stacks-own kernel-sp kernel-frame

OMP_LLVM := $(if $(CLANG),$(shell echo 'int main(void){return 0;}' | \
	$(CLANG) -fopenmp -x c - -o /dev/null 2>/dev/null && echo omp_llvm dynamic_llvm))
RUST := $(if $(RUSTC),rust_lock)
FLAVOURS = plain $(if $(wildcard $(CAUSAL_INC)/causal.h),causal) \
	$(if $(wildcard $(COZ_INC)/coz.h),coz)

FLAGS_plain =
FLAGS_causal = -DUSE_CAUSAL -I$(CAUSAL_INC)
# Coz walks frame pointers and its reader of debug information stops at DWARF 4.
FLAGS_coz = -DUSE_COZ -I$(COZ_INC) -gdwarf-4 -gno-variable-location-views -fno-omit-frame-pointer
LIBS_coz = -ldl

NAMES = $(C_PROGRAMS) $(MEET) $(VARIANTS) $(OMP_LLVM) $(RUST)
HEADERS = $(wildcard $(SRC)/*.h) $(SRC)/programs.mk

all: $(foreach f,$(FLAVOURS) $(if $(filter causal,$(FLAVOURS)),stripped),$(NAMES:%=$(OUT)/$(f)/%))

# per-program extras
extra-omp = -fopenmp
extra-dynamic = -fopenmp
extra-hot = -fopenmp
extra-recursion = -fomit-frame-pointer
extra-nested = -Wl,-rpath,'$$ORIGIN' -L$(@D) -lgtwork

define FLAVOUR
$(OUT)/$(1)/%: $(SRC)/%.c $(HEADERS)
	@mkdir -p $$(@D)
	$(CC) -std=gnu17 $(COMMON) $(FLAGS_$(1)) $$< -o $$@ $$(extra-$$*) $(LIBS_$(1))
$(OUT)/$(1)/%: $(SRC)/%.cc $(HEADERS)
	@mkdir -p $$(@D)
	$(CXX) -std=gnu++20 $(COMMON) $(FLAGS_$(1)) $$< -o $$@ $(LIBS_$(1))
$(OUT)/$(1)/%_llvm: $(SRC)/%.c $(HEADERS)
	@mkdir -p $$(@D)
	$(CLANG) -std=gnu17 $(COMMON) $(filter-out -gno-variable%,$(FLAGS_$(1))) -fopenmp $$< -o $$@ $(LIBS_$(1))
$(OUT)/$(1)/libgtwork.so: $(SRC)/work_lib.c $(HEADERS)
	@mkdir -p $$(@D)
	$(CC) -std=gnu17 $(COMMON) $(filter-out -DUSE%,$(FLAGS_$(1))) -fPIC -shared $$< -o $$@
$(OUT)/$(1)/nested: $(OUT)/$(1)/libgtwork.so
$(OUT)/$(1)/rust_lock: $(SRC)/rust_lock.rs $(SRC)/rust_shim.c $(HEADERS)
	@mkdir -p $$(@D)
	$(CC) -std=gnu17 $(COMMON) $(FLAGS_$(1)) -c $(SRC)/rust_shim.c -o $$@.shim.o
	MAKEFLAGS= $(RUSTC) --edition 2021 -C opt-level=2 -C debuginfo=2 -C codegen-units=1 \
		-C link-arg=$$@.shim.o -C link-arg=-ldl $(SRC)/rust_lock.rs -o $$@
$(VARIANTS:%=$(OUT)/$(1)/%):
	ln -f $$< $$@
endef
define VARIANT
$(OUT)/$(1)/$(2): $(OUT)/$(1)/$(firstword $(subst -, ,$(2)))
endef
$(foreach f,$(FLAVOURS),$(eval $(call FLAVOUR,$(f))))
$(foreach f,$(FLAVOURS),$(foreach v,$(VARIANTS),$(eval $(call VARIANT,$(f),$(v)))))

$(OUT)/stripped/%: $(OUT)/causal/%
	@mkdir -p $(@D)
	objcopy --only-keep-debug $< $@.debug
	strip -o $@ $<
	cd $(@D) && objcopy --add-gnu-debuglink=$(@F).debug $(@F)
$(OUT)/stripped/nested: $(OUT)/stripped/libgtwork.so

clean:
	rm -rf $(OUT)/plain $(OUT)/causal $(OUT)/coz $(OUT)/stripped
.PHONY: all clean
