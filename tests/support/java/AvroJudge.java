// Reads and writes Avro files with Apache's own library, for the tests of our reader and writer.
//   read SCHEMA FILE…                   one line per record: offset, timestamp, key, value, sorted headers; bytes in hex
//   write DIRECTORY SCHEMA CODEC…       200 records of topic `orders`, partition 3; every third has no key
import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import org.apache.avro.Schema;
import org.apache.avro.file.CodecFactory;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.file.DataFileWriter;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;

public class AvroJudge {
    public static void main(String[] args) throws Exception {
        if (args[0].equals("read")) {
            for (int i = 2; i < args.length; i++) read(new File(args[i]), args[1].isEmpty() ? null : schema(args[1]));
        } else {
            for (int i = 3; i < args.length; i++) write(new File(args[1], args[i] + ".avro"), schema(args[2]), args[i]);
        }
    }

    static Schema schema(String file) throws Exception {
        // The documented default of `headers` breaks Avro's rule for defaults of unions.
        return new Schema.Parser().setValidateDefaults(false).parse(Files.readString(Path.of(file)));
    }

    static void read(File file, Schema wanted) throws Exception {
        GenericDatumReader<GenericRecord> reader = new GenericDatumReader<>(null, wanted);
        try (DataFileReader<GenericRecord> records = new DataFileReader<>(file, reader)) {
            for (GenericRecord each : records) {
                System.out.println(each.get("topic") + " " + each.get("partition") + " " + each.get("offset") + " "
                    + each.get("timestamp") + " " + hex(each.get("key")) + " " + hex(each.get("value")) + headers(each));
            }
        }
    }

    static String headers(GenericRecord record) {
        TreeMap<String, String> sorted = new TreeMap<>();
        Map<?, ?> found = (Map<?, ?>) record.get("headers");
        if (found != null) found.forEach((name, value) -> sorted.put(name.toString(), hex(value)));
        StringBuilder text = new StringBuilder();
        sorted.forEach((name, value) -> text.append(" ").append(name).append("=").append(value));
        return text.toString();
    }

    static String hex(Object bytes) {
        if (bytes == null) return "null";
        ByteBuffer copy = ((ByteBuffer) bytes).duplicate();
        byte[] data = new byte[copy.remaining()];
        copy.get(data);
        return "x" + HexFormat.of().formatHex(data);
    }

    static ByteBuffer bytes(String text) {
        return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    static void write(File file, Schema schema, String codec) throws Exception {
        try (DataFileWriter<GenericRecord> out = new DataFileWriter<>(new GenericDatumWriter<>(schema))) {
            out.setCodec(CodecFactory.fromString(codec)).setSyncInterval(500).create(schema, file);
            for (int i = 0; i < 200; i++) {
                GenericRecord record = new GenericData.Record(schema);
                record.put("topic", "orders");
                record.put("partition", 3);
                record.put("offset", 10_000_000_000L + 2 * i);
                record.put("timestamp", 1_700_000_000_000L - i);
                record.put("key", i % 3 == 0 ? null : bytes("k" + i));
                record.put("value", bytes("v" + i));
                record.put("headers", i % 2 == 0 ? null : Map.of("h", bytes("" + i)));
                out.append(record);
            }
        }
    }
}
