#ifndef TW_INTEGRITY_H
#define TW_INTEGRITY_H
#include "tilewright.h"

tw_status tw_check_integrity(void);
#endif
