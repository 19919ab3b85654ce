// Tables of Apache Arrow, for those who have the library (libarrow-dev, see
// https://arrow.apache.org/install; CMake: find_package(Arrow)). outlive.hpp does not include this.
//
// Example:
//
//     #include <arrow/array/builder_primitive.h>
//
//     struct scan { // its columns
//         static constexpr const char *name = "robot/Scan";
//         static std::shared_ptr<arrow::Schema> schema() {
//             return arrow::schema({arrow::field("range", arrow::float32())});
//         }
//     };
//
//     auto sender = node.publisher<outlive::table<scan>>("/arrow/scan").value();
//     auto receiver = node.subscriber<outlive::table<scan>>("/arrow/scan").value();
//     arrow::FloatBuilder ranges;
//     std::shared_ptr<arrow::Array> column;
//     if (ranges.AppendValues({1.0F, 2.5F}).ok() && ranges.Finish(&column).ok()) {
//         auto batch = arrow::RecordBatch::Make(scan::schema(), 2, {column});
//         outlive::publish(sender, *batch).value(); // written once, into shared memory
//     }
//     if (auto sample = receiver.receive(1s)) {
//         auto seen = outlive::read(std::move(*sample)).value(); // checked, or OUTLIVE_CORRUPT
//         drive(seen->num_rows());
//     }
//
// They travel as a stream of Arrow's IPC format. The columns that a reader gets lie in shared memory
// and keep their sample for as long as any of them is there. The topic has the schema: another one is
// refused, and tools show the columns.
#ifndef OUTLIVE_ARROW_HPP
#define OUTLIVE_ARROW_HPP

#include <memory>

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>

#include "topic.hpp"

namespace outlive::inline OUTLIVE_ABI {

/// The columns of a table: a name for all programs, and `static schema()`.
template <class C>
concept columns = requires {
    { C::name } -> std::convertible_to<const char *>;
    { C::schema() } -> std::convertible_to<std::shared_ptr<arrow::Schema>>;
};

/// A table with these columns, as a message: its bytes, of `publish` and for `read`.
///
/// Example:
///
///     struct wheels {
///         static constexpr const char *name = "robot/Wheels";
///         static std::shared_ptr<arrow::Schema> schema() {
///             return arrow::schema({arrow::field("rad_s", arrow::float64())});
///         }
///     };
///
///     auto all = node.subscriber<outlive::table<wheels>>("/arrow/wheels", {.history = 1}).value();
template <columns C> class table {
  public:
    explicit table(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

  private:
    std::span<const std::byte> bytes_;
};

namespace detail {
template <class C> struct payload<table<C>> {
    using view = table<C>;
    using argument = view;
    static constexpr bool is_fixed = false;
    static constexpr bool is_lent_as_bytes = true;
    static view of(const void *data, std::size_t size) {
        return view({static_cast<const std::byte *>(data), size});
    }
    static outlive_status type(::outlive_type **out) {
        const auto schema = arrow::ipc::SerializeSchema(*C::schema());
        const auto *bytes = schema.ok() ? (*schema)->data() : nullptr;
        return ::outlive_type_encoded("arrow", C::name, bytes,
                                      schema.ok() ? static_cast<std::size_t>((*schema)->size()) : 0,
                                      out);
    }
    static const void *data(const view &value) { return value.bytes().data(); }
    static std::size_t size(const view &value) { return value.bytes().size(); }
};

/// What Arrow says, as an error of ours.
inline error arrow_error(outlive_status code, const char *doing, const char *name,
                         const arrow::Status &status) {
    return error(code, std::string(doing) + ' ' + name + ": " + status.ToString());
}

/// `write` for both kinds of what there may be.
inline arrow::Status write_all(arrow::ipc::RecordBatchWriter &to, const arrow::RecordBatch &batch) {
    return to.WriteRecordBatch(batch);
}
inline arrow::Status write_all(arrow::ipc::RecordBatchWriter &to, const arrow::Table &table) {
    return to.WriteTable(table);
}
template <class What>
arrow::Status write_stream(arrow::io::OutputStream *to, const std::shared_ptr<arrow::Schema> &schema,
                           const What &what) {
    ARROW_ASSIGN_OR_RAISE(auto writer, arrow::ipc::MakeStreamWriter(to, schema));
    ARROW_RETURN_NOT_OK(write_all(*writer, what));
    return writer->Close();
}

/// The bytes of a sample, which stays as long as they.
template <class C> class kept final : public arrow::Buffer {
  public:
    explicit kept(std::unique_ptr<const sample<table<C>>> from)
        : arrow::Buffer(reinterpret_cast<const std::uint8_t *>((**from).bytes().data()),
                        static_cast<std::int64_t>((**from).bytes().size())),
          from_(std::move(from)) {}

  private:
    std::unique_ptr<const sample<table<C>>> from_;
};
} // namespace detail

/// Publishes a record batch or a table, written straight into shared memory; returns its number.
/// OUTLIVE_TYPE_MISMATCH if its schema is another one.
///
/// Example:
///
///     struct marks {
///         static constexpr const char *name = "robot/Marks";
///         static std::shared_ptr<arrow::Schema> schema() {
///             return arrow::schema({arrow::field("id", arrow::uint32())});
///         }
///     };
///
///     auto sender = node.publisher<outlive::table<marks>>("/arrow/marks").value();
///     if (auto none = arrow::Table::MakeEmpty(marks::schema()); none.ok()) {
///         outlive::publish(sender, **none).value();
///     }
template <columns C, class What>
    requires std::derived_from<What, arrow::RecordBatch> || std::derived_from<What, arrow::Table>
expected<std::uint64_t> publish(publisher<table<C>> &to, const What &what) {
    const auto schema = C::schema();
    if (!what.schema()->Equals(*schema)) {
        return unexpected(error(OUTLIVE_TYPE_MISMATCH,
                                std::string("sending ") + C::name + ": its schema is\n" +
                                    what.schema()->ToString() + "\nthe topic has\n" +
                                    schema->ToString()));
    }
    arrow::io::MockOutputStream counted;
    auto status = detail::write_stream(&counted, schema, what);
    if (!status.ok()) {
        return unexpected(
            detail::arrow_error(OUTLIVE_INVALID_ARGUMENT, "sending", C::name, status));
    }
    auto loan = to.loan(static_cast<std::size_t>(counted.GetExtentBytesWritten()));
    if (!loan) {
        return unexpected(std::move(loan).error());
    }
    const auto bytes = loan->span();
    arrow::io::FixedSizeBufferWriter room(std::make_shared<arrow::MutableBuffer>(
        reinterpret_cast<std::uint8_t *>(bytes.data()), static_cast<std::int64_t>(bytes.size())));
    if (status = detail::write_stream(&room, schema, what); !status.ok()) {
        return unexpected(
            detail::arrow_error(OUTLIVE_INVALID_ARGUMENT, "sending", C::name, status));
    }
    return std::move(*loan).publish();
}

/// The table of a message, whose columns lie in shared memory and keep the sample. All offsets and
/// lengths in it are checked: OUTLIVE_CORRUPT.
///
/// Example:
///
///     struct cells {
///         static constexpr const char *name = "robot/Cells";
///         static std::shared_ptr<arrow::Schema> schema() {
///             return arrow::schema({arrow::field("volt", arrow::float32())});
///         }
///     };
///
///     auto receiver = node.subscriber<outlive::table<cells>>("/arrow/cells").value();
///     if (auto sample = receiver.receive()) {
///         std::shared_ptr<arrow::Table> seen = outlive::read(std::move(*sample)).value();
///     }
template <columns C>
expected<std::shared_ptr<arrow::Table>> read(sample<table<C>> from) {
    const auto of = [&]() -> arrow::Result<std::shared_ptr<arrow::Table>> {
        auto held = std::make_unique<const sample<table<C>>>(std::move(from));
        const auto source = std::make_shared<arrow::io::BufferReader>(
            std::make_shared<detail::kept<C>>(std::move(held)));
        ARROW_ASSIGN_OR_RAISE(auto reader, arrow::ipc::RecordBatchStreamReader::Open(source));
        if (!reader->schema()->Equals(*C::schema())) {
            return arrow::Status::TypeError("its schema is ", reader->schema()->ToString());
        }
        ARROW_ASSIGN_OR_RAISE(auto all, reader->ToTable());
        ARROW_RETURN_NOT_OK(all->ValidateFull());
        return all;
    }();
    if (!of.ok()) {
        return unexpected(detail::arrow_error(OUTLIVE_CORRUPT, "receiving", C::name, of.status()));
    }
    return *of;
}
} // namespace outlive::inline OUTLIVE_ABI

#endif
