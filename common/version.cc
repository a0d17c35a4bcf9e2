// SPDX-License-Identifier: Apache-2.0
#include "common/version.h"

namespace sekisho {

const char* const kVersion = SEKISHO_VERSION;

}  // namespace sekisho
