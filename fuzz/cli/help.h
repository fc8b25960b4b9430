// --help that fits into 80 columns: CLI11's own formatter does not wrap.
#pragma once
#include <string>

namespace CLI {
class App;
}

namespace faultline::cli {

// Makes every App below `app` print its help this way. A footer is an example and printed as it is.
void useOurHelp(CLI::App& app);

}  // namespace faultline::cli
