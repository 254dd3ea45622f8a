#include "textflag.h"

// func line(address unsafe.Pointer)
TEXT ·line(SB), NOSPLIT, $0-8
	MOVD address+0(FP), R0
	PRFM (R0), PLDL1KEEP
	RET
