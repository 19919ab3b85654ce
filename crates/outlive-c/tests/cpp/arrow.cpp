// Tables of Arrow: written into shared memory once, read there, kept beyond all handles, other
// schemas, and bytes that nobody meant.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <outlive.hpp>
#include <outlive/arrow.hpp>

#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_primitive.h>

#include "check.hpp"

using namespace std::chrono_literals;

struct scan {
    static constexpr const char *name = "robot/Scan";
    static std::shared_ptr<arrow::Schema> schema() {
        return arrow::schema(
            {arrow::field("range", arrow::float64()), arrow::field("label", arrow::utf8())});
    }
};
struct other {
    static constexpr const char *name = "robot/Scan";
    static std::shared_ptr<arrow::Schema> schema() {
        return arrow::schema({arrow::field("range", arrow::float32())});
    }
};
using outlive::table;

static std::shared_ptr<arrow::RecordBatch> make(int rows) {
    arrow::DoubleBuilder ranges;
    arrow::StringBuilder labels;
    for (int i = 0; i < rows; ++i) {
        CHECK(ranges.Append(i / 2.0).ok() && labels.Append("wall " + std::to_string(i)).ok());
    }
    return arrow::RecordBatch::Make(scan::schema(), rows,
                                    {ranges.Finish().ValueOrDie(), labels.Finish().ValueOrDie()});
}

static bool is(const arrow::Table &seen, int rows) {
    return seen.Equals(*arrow::Table::FromRecordBatches({make(rows)}).ValueOrDie());
}

static const std::uint8_t *values(const arrow::Table &seen) {
    return seen.column(0)->chunk(0)->data()->buffers[1]->data();
}

int main() {
    auto node = outlive::node::open("arrow").value();
    std::shared_ptr<arrow::Table> kept;
    {
        auto publisher = node.publisher<table<scan>>("/scan").value();
        auto subscriber = node.subscriber<table<scan>>("/scan").value();
        for (const int rows : {0, 1, 3, 1000, 100'000}) {
            outlive::publish(publisher, *make(rows)).value();
            auto sample = subscriber.receive(5s).value();
            const auto bytes = (*sample).bytes();
            CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64 == 0 || !sample.is_borrowed());
            const auto *begin = reinterpret_cast<const std::uint8_t *>(bytes.data());
            const bool borrowed = sample.is_borrowed();
            const auto size = bytes.size();
            const auto seen = outlive::read(std::move(sample)).value();
            CHECK(is(*seen, rows));
            if (rows >= 1000) {
                CHECK(borrowed && values(*seen) > begin && values(*seen) < begin + size);
            }
        }
        // A table of several batches, too.
        const auto two = arrow::Table::FromRecordBatches({make(2), make(3)}).ValueOrDie();
        outlive::publish(publisher, *two).value();
        kept = outlive::read(subscriber.receive(5s).value()).value();
        CHECK(kept->Equals(*two));
        // One that stays with its reader is not written over.
        outlive::publish(publisher, *make(5000)).value();
        kept = outlive::read(subscriber.receive(5s).value()).value();
        for (int i = 0; i < 100; ++i) {
            outlive::publish(publisher, *make(5001)).value();
        }
        CHECK(is(*kept, 5000));
    }
    CHECK(is(*kept, 5000)); // publisher and subscriber are closed

    auto publisher = node.publisher<table<scan>>("/told").value();
    auto subscriber = node.subscriber<table<scan>>("/told").value();
    auto wrong = node.subscriber<table<other>>("/told");
    CHECK(!wrong && wrong.error().code() == OUTLIVE_TYPE_MISMATCH);
    const auto strange = arrow::Table::MakeEmpty(other::schema()).ValueOrDie();
    auto sent = outlive::publish(publisher, *strange);
    CHECK(!sent && sent.error().code() == OUTLIVE_TYPE_MISMATCH);
    CHECK(sent.error().message().find("sending robot/Scan: its schema is") != std::string_view::npos);
    CHECK(subscriber.receive().error().code() == OUTLIVE_WOULD_BLOCK);

    // Any byte may be wrong, and it may end anywhere.
    outlive::publish(publisher, *make(3)).value();
    const auto sample = subscriber.receive(5s).value();
    const auto shown = (*sample).bytes();
    const std::vector<std::byte> good(shown.begin(), shown.end());
    unsigned refused = 0;
    const auto send = [&](std::span<const std::byte> bytes) {
        publisher.publish(table<scan>(bytes)).value();
        const auto seen = outlive::read(subscriber.receive(5s).value());
        if (!seen) {
            CHECK(seen.error().code() == OUTLIVE_CORRUPT);
            CHECK(seen.error().message().find("receiving robot/Scan: ") != std::string_view::npos);
            ++refused;
        }
    };
    for (std::size_t i = 0; i < good.size(); ++i) {
        auto broken = good;
        broken[i] ^= std::byte{0xFF};
        send(broken);
        send(std::span(good).first(i));
    }
    CHECK(refused > good.size());
    std::printf("arrow: in shared memory\n");
}
