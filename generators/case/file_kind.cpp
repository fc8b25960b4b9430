#include "generators/case/case.h"
#include "generators/text/scanner.h"

namespace faultline {

FileKind fileKind(std::string_view bytes) {
  if (bytes.starts_with(std::string_view("PK\3\4", 4))) return FileKind::Archive;
  Scanner scanner(bytes);
  scanner.skipSpaceAndComments();
  if (scanner.accept("faultline case")) return FileKind::Case;
  if (scanner.accept("faultline tape")) return FileKind::Tape;
  if (scanner.peek() == '@') return FileKind::TorchScript;
  std::string_view word = scanner.word();
  scanner.skipBlanks();
  if (word == "graph" && scanner.peek() == '(') return FileKind::Ir;
  if (word == "def" || word == "import" || word == "from" || word == "class") return FileKind::TorchScript;
  return FileKind::Unknown;
}

}  // namespace faultline
