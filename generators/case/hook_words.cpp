// What stands in hooks.def.
#include "engine/support/check.h"
#include "generators/case/case.h"

namespace faultline {

const char* hookWord(HookKind kind) {
  switch (kind) {
#define FAULTLINE_HOOK(Name, word, help) \
  case HookKind::Name:                   \
    return word;
#include "generators/case/hooks.def"
  }
  FAULTLINE_CHECK(false, "a hook of no kind");
}

const char* hookWord(HookAction action) {
  switch (action) {
#define FAULTLINE_HOOK_ACTION(Name, word, fits, help) \
  case HookAction::Name:                              \
    return word;
#include "generators/case/hooks.def"
  }
  FAULTLINE_CHECK(false, "a hook that does nothing known");
}

bool fitsHook(HookAction action, const HookSpec& hook) {
  switch (action) {
#define FAULTLINE_HOOK_ACTION(Name, word, fits, help) \
  case HookAction::Name:                              \
    return fits;
#include "generators/case/hooks.def"
  }
  return false;
}

const std::vector<HookKind>& allHookKinds() {
  static const std::vector<HookKind> kinds = {
#define FAULTLINE_HOOK(Name, word, help) HookKind::Name,
#include "generators/case/hooks.def"
  };
  return kinds;
}

const std::vector<HookAction>& allHookActions() {
  static const std::vector<HookAction> actions = {
#define FAULTLINE_HOOK_ACTION(Name, word, fits, help) HookAction::Name,
#include "generators/case/hooks.def"
  };
  return actions;
}

}  // namespace faultline
