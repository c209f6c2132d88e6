// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.net.URI;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.AccessMode;
import java.nio.file.CopyOption;
import java.nio.file.DirectoryStream;
import java.nio.file.FileStore;
import java.nio.file.FileSystem;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.PathMatcher;
import java.nio.file.WatchService;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.FileAttributeView;
import java.nio.file.attribute.UserPrincipalLookupService;
import java.nio.file.spi.FileSystemProvider;
import java.util.Map;
import java.util.Set;

/** The file system of a path by which something happens just before and after it is opened. */
final class Opening extends FileSystemProvider {
  private final Path file;
  private final Exchange before;
  private final Exchange after;

  /** What happens. */
  interface Exchange {
    void happen() throws IOException;
  }

  private Opening(Path file, Exchange before, Exchange after) {
    this.file = file;
    this.before = before;
    this.after = after;
  }

  static Path of(Path file, Exchange before, Exchange after) {
    FileSystem system = new Holder(new Opening(file, before, after));
    return (Path)
        Proxy.newProxyInstance(
            Opening.class.getClassLoader(),
            new Class<?>[] {Path.class},
            (proxy, method, arguments) -> {
              if (method.getName().equals("getFileSystem")) {
                return system;
              }
              try {
                return method.invoke(file, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  @Override
  public InputStream newInputStream(Path path, OpenOption... options) throws IOException {
    before.happen();
    InputStream opened = Files.newInputStream(file, options);
    after.happen();
    return opened;
  }

  @Override
  public Map<String, Object> readAttributes(Path path, String names, LinkOption... options)
      throws IOException {
    return Files.readAttributes(file, names, options);
  }

  @Override
  public <A extends BasicFileAttributes> A readAttributes(
      Path path, Class<A> type, LinkOption... options) throws IOException {
    return Files.readAttributes(file, type, options);
  }

  private static UnsupportedOperationException none() {
    return new UnsupportedOperationException();
  }

  @Override
  public String getScheme() {
    throw none();
  }

  @Override
  public FileSystem newFileSystem(URI uri, Map<String, ?> environment) {
    throw none();
  }

  @Override
  public FileSystem getFileSystem(URI uri) {
    throw none();
  }

  @Override
  public Path getPath(URI uri) {
    throw none();
  }

  @Override
  public SeekableByteChannel newByteChannel(
      Path path, Set<? extends OpenOption> options, FileAttribute<?>... attributes) {
    throw none();
  }

  @Override
  public DirectoryStream<Path> newDirectoryStream(
      Path path, DirectoryStream.Filter<? super Path> filter) {
    throw none();
  }

  @Override
  public void createDirectory(Path path, FileAttribute<?>... attributes) {
    throw none();
  }

  @Override
  public void delete(Path path) {
    throw none();
  }

  @Override
  public void copy(Path from, Path to, CopyOption... options) {
    throw none();
  }

  @Override
  public void move(Path from, Path to, CopyOption... options) {
    throw none();
  }

  @Override
  public boolean isSameFile(Path one, Path other) {
    throw none();
  }

  @Override
  public boolean isHidden(Path path) {
    throw none();
  }

  @Override
  public FileStore getFileStore(Path path) {
    throw none();
  }

  @Override
  public void checkAccess(Path path, AccessMode... modes) {
    throw none();
  }

  @Override
  public <V extends FileAttributeView> V getFileAttributeView(
      Path path, Class<V> type, LinkOption... options) {
    throw none();
  }

  @Override
  public void setAttribute(Path path, String name, Object value, LinkOption... options) {
    throw none();
  }

  /** A file system that is there for its provider alone. */
  private static final class Holder extends FileSystem {
    private final FileSystemProvider provider;

    Holder(FileSystemProvider provider) {
      this.provider = provider;
    }

    @Override
    public FileSystemProvider provider() {
      return provider;
    }

    @Override
    public void close() {
      throw none();
    }

    @Override
    public boolean isOpen() {
      throw none();
    }

    @Override
    public boolean isReadOnly() {
      throw none();
    }

    @Override
    public String getSeparator() {
      throw none();
    }

    @Override
    public Iterable<Path> getRootDirectories() {
      throw none();
    }

    @Override
    public Iterable<FileStore> getFileStores() {
      throw none();
    }

    @Override
    public Set<String> supportedFileAttributeViews() {
      throw none();
    }

    @Override
    public Path getPath(String first, String... more) {
      throw none();
    }

    @Override
    public PathMatcher getPathMatcher(String pattern) {
      throw none();
    }

    @Override
    public UserPrincipalLookupService getUserPrincipalLookupService() {
      throw none();
    }

    @Override
    public WatchService newWatchService() {
      throw none();
    }
  }
}
