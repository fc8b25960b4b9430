// The walk that fills Objects; see objects.h for what it finds.
#pragma once
#include "engine/profile/containers.h"
#include "engine/profile/objects.h"

namespace faultline::profile {

// A tensor or an optional one.
bool isTensorLike(const c10::TypePtr& type);

class ObjectBuilder {
 public:
  ObjectBuilder(Objects& objects, const FlowProgram& program, const GradModes& modes, Reasons& reasons);
  void run();

 private:
  // How much may be assumed of a value that is made from its type alone.
  enum class Origin { Outside, New };

  void visit(int32_t index);
  void visitNode(int32_t index);
  bool visitSpecial(int32_t index);
  bool visitContainer(int32_t index);
  void visitGeneric(int32_t index);
  void visitResult(int32_t index, const ResultEffect& result, const Value* output);
  void visitOpaque(int32_t index);
  void beginBlock(int32_t index);
  void endBlock(int32_t index);
  void close(int32_t index);

  Ref get(const Value* value) const { return objects_.ref(value); }
  const ReadValue& read(int32_t step, size_t offset) const { return objects_.operands(step)[offset]; }
  void bind(const Value* value, Ref ref, int32_t feed = -1);
  int32_t newRoot(const Value* value, int32_t step, ReasonId reason);
  Ref fromType(const c10::TypePtr& type, const Value* value, int32_t step, Origin origin, ReasonId reason,
               int depth = 0);
  Ref aggregate(Aggregate aggregate);
  Ref element(Ref container, size_t index, const c10::TypePtr& type, const Value* value, int32_t step);
  Ref looseElement(const Value* value, int32_t step, Ref container);
  void escape(Ref ref);
  void recordWrite(int32_t index, const WriteEffect& write);

  // Joins. `refs` has one per arm.
  Ref ifResult(const std::vector<Ref>& refs, const std::vector<int32_t>& arms, const c10::TypePtr& type,
               const Value* value, int32_t close);
  Ref carried(Ref initial, const Value* param, int32_t begin, int32_t open, const c10::TypePtr& type);
  void addBack(Ref carried, Ref returned, int32_t end);
  Ref loopResult(Ref initial, Ref returned, const Value* output, int32_t close, int32_t body);
  bool carriedUnchanged(const Value* returned, const Value* param);
  FlowOperand operand(Ref ref, Pos at, int32_t arm) const;
  void includeRegions(Root& root, const FlowOperand& operand);

  Objects& objects_;
  const FlowProgram& program_;
  const GradModes& modes_;
  Reasons& reasons_;
  Effects effects_;
  Containers containers_;
  RegionId constants_object_;
  RegionId constants_group_;
};

}  // namespace faultline::profile
