// Messages of ROS 2 as CDR, which `outlive types import --cdr` writes, for those who have Fast-CDR
// of eProsima, 1.x or 2.x (Debian, Ubuntu: libfastcdr-dev; CMake: find_package(fastcdr); link it with
// -lfastcdr). outlive.hpp does not include this.
//
// Example:
//
//     #include "plan_msgs.hpp" // by outlive types import --cdr
//
//     auto sender = node.publisher<plan_msgs::Goal>("/goal").value();
//     auto receiver = node.subscriber<plan_msgs::Goal>("/goal").value();
//     sender.publish(plan_msgs::Goal{.name = "dock"}).value();
//     if (auto sample = receiver.receive(1s)) { drive(sample->value().value().name); }
//
// Fast-CDR reads and writes numbers and text. It believes a length before it has seen the elements,
// knows no bounds, leaves padding as it was in memory, and 1.x ends text at a zero in it: this header
// does not.
#ifndef OUTLIVE_CDR_HPP
#define OUTLIVE_CDR_HPP

#include <cstring>
#include <exception>

#include <fastcdr/Cdr.h>
#include <fastcdr/config.h>

#include "message.hpp"

namespace outlive {
inline namespace OUTLIVE_ABI {

/// No bound.
inline constexpr std::size_t cdr_any = SIZE_MAX;

/// What a message is to ROS: `cdr_name`, `schema`, and `fields`, which visits each field by its name
/// with the bounds of its list and text.
template <class T> struct cdr_message;

namespace detail {

/// What is wrong with a field, behind its name.
struct cdr_wrong {
    std::string why, path;

    void within(const std::string &name) {
        path.insert(0, path.empty() || path[0] == '[' ? name : name + '.');
    }
    [[nodiscard]] std::string text() const { return path.empty() ? why : path + ": " + why; }
};

template <class T> constexpr bool is_array_of_cdr = false;
template <class T, std::size_t N> constexpr bool is_array_of_cdr<std::array<T, N>> = true;
template <class T> constexpr bool is_list_of_cdr = false;
template <class T> constexpr bool is_list_of_cdr<std::vector<T>> = true;
/// Numbers that lie side by side: those of vector<bool> do not.
template <class T>
constexpr bool is_plain_of_cdr = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

/// Calls `what`; what it throws names the field `name`.
template <class F> void in_field_of_cdr(const std::string &name, const F &what) {
    try {
        what();
    } catch (cdr_wrong &wrong) {
        wrong.within(name);
        throw;
    } catch (const eprosima::fastcdr::exception::NotEnoughMemoryException &) {
        throw cdr_wrong{"it ends before its end", name};
    } catch (const eprosima::fastcdr::exception::Exception &e) {
        throw cdr_wrong{e.what(), name};
    }
}

/// Either end of Fast-CDR, over what follows the header of four bytes.
class cdr_stream {
  public:
    cdr_stream(eprosima::fastcdr::FastBuffer &buffer, bool is_little)
        : cdr_(buffer,
               is_little ? eprosima::fastcdr::Cdr::LITTLE_ENDIANNESS
                         : eprosima::fastcdr::Cdr::BIG_ENDIANNESS,
#if FASTCDR_VERSION_MAJOR >= 2
               eprosima::fastcdr::CdrVersion::XCDRv1
#else
               eprosima::fastcdr::Cdr::DDS_CDR
#endif
          ) {
    }

    [[nodiscard]] std::size_t done() const {
#if FASTCDR_VERSION_MAJOR >= 2
        return cdr_.get_serialized_data_length();
#else
        return cdr_.getSerializedDataLength();
#endif
    }

  protected:
    static void check(std::size_t count, std::size_t most) {
        if (count > most) {
            throw cdr_wrong{std::to_string(count) + " elements instead of at most " +
                                std::to_string(most),
                            {}};
        }
    }
    static void check_text(const std::string &text, std::size_t most) {
        if (text.size() > most) {
            throw cdr_wrong{"a text of " + std::to_string(text.size()) +
                                " bytes instead of at most " + std::to_string(most),
                            {}};
        }
    }

    eprosima::fastcdr::Cdr cdr_;
};

class cdr_writer : public cdr_stream {
  public:
    explicit cdr_writer(eprosima::fastcdr::FastBuffer &buffer) : cdr_stream(buffer, true) {}

    template <class T>
    void operator()(const char *name, const T &value, std::size_t most = cdr_any,
                    std::size_t text_most = cdr_any) {
        in_field_of_cdr(name, [&] { write(value, most, text_most); });
    }

  private:
    /// Zeros up to a multiple of `align`: Fast-CDR would leave what was there.
    void pad(std::size_t align) {
        while (done() % align != 0) {
            cdr_.serialize(std::uint8_t{0});
        }
    }
    template <class T> void write(const T &value, std::size_t most, std::size_t text_most) {
        if constexpr (std::is_arithmetic_v<T>) {
            pad(sizeof(T));
            cdr_.serialize(value);
        } else if constexpr (std::is_same_v<T, std::string>) {
            check_text(value, text_most);
            if (value.find('\0') != std::string::npos) {
                throw cdr_wrong{"text with a zero in it", {}};
            }
            pad(sizeof(std::uint32_t));
            cdr_.serialize(value);
        } else if constexpr (is_list_of_cdr<T>) {
            check(value.size(), std::min<std::size_t>(most, UINT32_MAX));
            pad(sizeof(std::uint32_t));
            cdr_.serialize(static_cast<std::uint32_t>(value.size()));
            write_all(value, text_most);
        } else if constexpr (is_array_of_cdr<T>) {
            write_all(value, text_most);
        } else {
            cdr_message<T>::fields(value, *this);
        }
    }
    template <class T> void write_all(const T &values, std::size_t text_most) {
        if constexpr (is_plain_of_cdr<typename T::value_type>) {
            if (!values.empty()) {
                pad(sizeof(values[0]));
#if FASTCDR_VERSION_MAJOR >= 2
                cdr_.serialize_array(values.data(), values.size());
#else
                cdr_.serializeArray(values.data(), values.size());
#endif
            }
        } else {
            for (std::size_t i = 0; i < values.size(); ++i) {
                in_field_of_cdr('[' + std::to_string(i) + ']', [&] {
                    write<typename T::value_type>(values[i], cdr_any, text_most);
                });
            }
        }
    }
};

class cdr_reader : public cdr_stream {
  public:
    cdr_reader(eprosima::fastcdr::FastBuffer &buffer, bool is_little, std::size_t size)
        : cdr_stream(buffer, is_little), size_(size) {}

    template <class T>
    void operator()(const char *name, T &value, std::size_t most = cdr_any,
                    std::size_t text_most = cdr_any) {
        in_field_of_cdr(name, [&] { read(value, most, text_most); });
    }

  private:
    template <class T> void read(T &value, std::size_t most, std::size_t text_most) {
        if constexpr (std::is_arithmetic_v<T>) {
            cdr_.deserialize(value);
        } else if constexpr (std::is_same_v<T, std::string>) {
            cdr_.deserialize(value); // no more than there is
            check_text(value, text_most);
        } else if constexpr (is_list_of_cdr<T>) {
            std::uint32_t count = 0;
            cdr_.deserialize(count);
            check(count, most);
            read_list(value, count, text_most);
        } else if constexpr (is_array_of_cdr<T>) {
            read_all(value, text_most);
        } else {
            cdr_message<T>::fields(value, *this);
        }
    }
    template <class T> void read_list(T &values, std::size_t count, std::size_t text_most) {
        using element = typename T::value_type;
        // Of numbers every byte, of others one at least.
        constexpr std::size_t least = is_plain_of_cdr<element> ? sizeof(element) : 1;
        if (count > (size_ - done()) / least) {
            throw cdr_wrong{"it ends before " + std::to_string(count) + " elements", {}};
        }
        values.clear();
        if constexpr (is_plain_of_cdr<element>) {
            values.resize(count);
            read_all(values, text_most);
        } else {
            for (std::size_t i = 0; i < count; ++i) {
                element one{};
                in_field_of_cdr('[' + std::to_string(i) + ']',
                                [&] { read(one, cdr_any, text_most); });
                values.push_back(std::move(one));
            }
        }
    }
    template <class T> void read_all(T &values, std::size_t text_most) {
        if constexpr (is_plain_of_cdr<typename T::value_type>) {
            if (!values.empty()) {
#if FASTCDR_VERSION_MAJOR >= 2
                cdr_.deserialize_array(values.data(), values.size());
#else
                cdr_.deserializeArray(values.data(), values.size());
#endif
            }
        } else {
            for (std::size_t i = 0; i < values.size(); ++i) {
                in_field_of_cdr('[' + std::to_string(i) + ']',
                                [&] { read(values[i], cdr_any, text_most); });
            }
        }
    }

    std::size_t size_;
};

/// Why `from` does not hold such a message; empty if `value` has it now.
template <class T> std::string read_cdr(std::span<const std::byte> from, T &value) {
    constexpr std::size_t header = 4, padding = 3; // some writers fill up to a multiple of 4
    if (from.size() < header) {
        return "it has no header";
    }
    const auto form = std::to_integer<int>(from[1]);
    if (form > 1) {
        return "it is of form " + std::to_string(form) + ", which is not plain CDR";
    }
    const auto body = from.subspan(header);
    try {
        // Only read, though the class takes what may be written.
        auto *at = const_cast<char *>(reinterpret_cast<const char *>(body.data()));
        eprosima::fastcdr::FastBuffer buffer(at, body.size());
        cdr_reader reader(buffer, form == 1, body.size());
        cdr_message<T>::fields(value, reader);
        const std::size_t left = body.size() - reader.done();
        return left > padding ? std::to_string(left) + " bytes are left" : "";
    } catch (const cdr_wrong &wrong) {
        return wrong.text();
    } catch (const std::exception &e) {
        return e.what();
    }
}
} // namespace detail
} // namespace OUTLIVE_ABI
} // namespace outlive

/// How messages of ROS travel.
template <class T>
    requires requires { outlive::cdr_message<T>::schema; }
struct outlive::packed_traits<T> {
    static constexpr const char *name = outlive::cdr_message<T>::cdr_name;

    static outlive_status type(::outlive_type **out) {
        const char *schema = outlive::cdr_message<T>::schema;
        return ::outlive_type_encoded("cdr", name, schema, std::strlen(schema), out);
    }
    static std::string pack(const T &value, std::vector<std::byte> &to) {
        constexpr std::array header{std::byte{0}, std::byte{1}, std::byte{0}, std::byte{0}};
        eprosima::fastcdr::FastBuffer buffer;
        outlive::detail::cdr_writer writer(buffer);
        try {
            outlive::cdr_message<T>::fields(value, writer);
        } catch (const outlive::detail::cdr_wrong &wrong) {
            return wrong.text();
        }
        const auto *data = reinterpret_cast<const std::byte *>(buffer.getBuffer());
        to.insert(to.end(), header.begin(), header.end());
        to.insert(to.end(), data, data + writer.done());
        return {};
    }
    static bool unpack(std::span<const std::byte> from, T &value) {
        return outlive::detail::read_cdr(from, value).empty();
    }
    /// Why unpack says no.
    static std::string fault(std::span<const std::byte> from) {
        T value;
        return outlive::detail::read_cdr(from, value);
    }
};

#endif
